/**
 * Records of runs: who ran what with which PKPs, duration, cost and outcome. The statement that closes a run's
 * reservation stores its end, so that records and ledger always agree. Ends become records in batches, with totals
 * alongside so that no list counts its rows: a row in each index and total costs more than the rest of a run's
 * accounting.
 */
import { sql, type RawBuilder, type Selectable } from "kysely";
import type { AccountId, Address, Cid, Hash32 } from "../../protocol/ids";
import type { Db } from "../store/database";
import type { RunRecordsTable } from "../store/tables/runs";
import { MAX_PAGE_OFFSET, offsetOf } from "./page";
import type { DayUsage, DaySpan, Page, RunFilter, RunRecord, RunView } from "./types";

/**
 * A common table expression that stores the end of a run, if `isEnd`. It follows one called `account`, whose
 * `cost_cents` is what this statement charged (no row: nothing).
 */
export function recordedBy(runId: string, record: RunRecord, isEnd: RawBuilder<boolean>): RawBuilder<unknown> {
  const { accountId, keyId, actionHash, cid, outcome, requestId, durationMs, pkpsUsed } = record;
  return sql`, recorded as (
      insert into run_ends (run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms, cost_cents,
        pkps_used, started_at, receipt_sha256, trigger_id, error_message)
      select ${runId}, ${accountId}, ${keyId}, ${actionHash}, ${cid}, ${outcome}, ${requestId}, ${durationMs}::float8,
        coalesce((select cost_cents from account), 0), ${JSON.stringify(pkpsUsed)}::jsonb,
        ${record.startedAt}::timestamptz, ${record.receiptSha256},
        ${record.triggerId ?? null}::text, ${record.errorMessage ?? null}::text
      where ${isEnd}
    )`;
}

/**
 * Turns all stored ends into records and adds them to the totals. Every reader of records calls it first. If a run's
 * end was stored more than once, the charged one counts; a run is recorded once.
 */
export async function recordEnds(db: Db): Promise<void> {
  while ((await recordSome(db)) === ENDS_AT_A_TIME);
}

/** Bounds a statement after an outage, when many ends wait. */
const ENDS_AT_A_TIME = 1_000;

/** Returns how many ends there were; another relayer may have recorded some of them meanwhile. */
async function recordSome(db: Db): Promise<number> {
  const { rows } = await sql<{ ends: number }>`
    with chosen as materialized (
      select ctid from run_ends limit ${sql.lit(ENDS_AT_A_TIME)}
    ), taken as (
      delete from run_ends where ctid = any(array(select ctid from chosen)) returning *
    ), recorded as (
      insert into run_records (run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms,
        cost_cents, pkps_used, started_at, receipt_sha256, trigger_id, error_message)
      select distinct on (run_id) run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms,
        cost_cents, pkps_used, started_at, receipt_sha256, trigger_id, error_message
      from taken order by run_id, cost_cents desc, place
      on conflict (run_id) do nothing
      returning account_id, key_id, action_hash, outcome, cost_cents, duration_ms, started_at
    ), alike as materialized (
      select account_id, key_id, action_hash, outcome, count(*) as runs from recorded group by 1, 2, 3, 4
    ), counted as (
      insert into run_counts (account_id, key_id, action_hash, outcome, runs)
      select account_id, k, a, o, sum(runs)
        from alike, unnest(array['', key_id]) k, unnest(array['', action_hash]) a, unnest(array['', outcome]) o
      group by account_id, k, a, o order by account_id, k, a, o
      on conflict (account_id, key_id, action_hash, outcome) do update set runs = run_counts.runs + excluded.runs
      returning 1
    ), summed as (
      insert into run_days (account_id, day, key_id, runs, failed, cost_cents, duration_ms)
      select account_id, (started_at at time zone 'UTC')::date as day, key_id, count(*),
        count(*) filter (where outcome <> 'succeeded'), sum(cost_cents)::int8,
        sum(duration_ms)
      from recorded where exists (select from counted) group by account_id, 2, key_id order by account_id, 2, key_id
      on conflict (account_id, day, key_id) do update
        set runs = run_days.runs + excluded.runs, failed = run_days.failed + excluded.failed,
        cost_cents = run_days.cost_cents + excluded.cost_cents,
          duration_ms = run_days.duration_ms + excluded.duration_ms
    )
    select count(*) as ends from chosen`.execute(db);
  return rows[0]?.ends ?? 0;
}

const SHOWN = [
  "request_id",
  "key_id",
  "cid",
  "duration_ms",
  "cost_cents",
  "outcome",
  "pkps_used",
  "started_at",
  "receipt_sha256",
  "trigger_id",
  "error_message",
] as const;

export class RunRecords {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Whether a run was ever reserved under this id, and its record if there is one. */
  async find(runId: string): Promise<{ readonly run?: RunView } | undefined> {
    await recordEnds(this.#db);
    const row = await this.#db.selectFrom("run_records").select(SHOWN).where("run_id", "=", runId).executeTakeFirst();
    if (row !== undefined) return { run: viewOf(row) };
    const reserved = await this.#db
      .selectFrom("credit_reservations")
      .select("id")
      .where("id", "=", runId)
      .executeTakeFirst();
    return reserved === undefined ? undefined : {};
  }

  /**
   * Recorded runs of the account, newest first, for as many days as records are kept. `total` does not consider
   * `from` and `until`.
   * @throws KeywrightError `invalid_value` for a page too far from the newest run.
   */
  async list(
    accountId: AccountId,
    filter: RunFilter,
    page: Page,
  ): Promise<{ readonly runs: readonly RunView[]; readonly total: number }> {
    await recordEnds(this.#db);
    let matching = this.#db.selectFrom("run_records").where("account_id", "=", accountId);
    if (filter.keyId !== undefined) matching = matching.where("key_id", "=", filter.keyId);
    if (filter.actionHash !== undefined) matching = matching.where("action_hash", "=", filter.actionHash);
    if (filter.outcome !== undefined) matching = matching.where("outcome", "=", filter.outcome);
    if (filter.until !== undefined)
      matching = matching.where("started_at", "<", sql<Date>`to_timestamp(${filter.until + 1}::float8)`);
    if (filter.from !== undefined)
      matching = matching.where("started_at", ">=", sql<Date>`to_timestamp(${filter.from}::float8)`);
    const count = await this.#db
      .selectFrom("run_counts")
      .select("runs")
      .where("account_id", "=", accountId)
      .where("key_id", "=", filter.keyId ?? "")
      .where("action_hash", "=", filter.actionHash ?? "")
      .where("outcome", "=", filter.outcome ?? "")
      .executeTakeFirst();
    const total = count?.runs ?? 0;
    const offset = offsetOf(page, total, "until");
    if (offset === undefined) return { runs: [], total };
    // Of the rows before the page only the index is visited.
    const onPage = matching
      .select("run_id")
      .orderBy("started_at", "desc")
      .orderBy("run_id")
      .limit(page.size)
      .offset(offset);
    const rows = await this.#db
      .selectFrom("run_records")
      .select(SHOWN)
      .where("run_id", "in", onPage)
      .orderBy("started_at", "desc")
      .orderBy("run_id")
      .execute();
    return { runs: rows.map(viewOf), total };
  }

  /** The newest run of each of these keys of the account, of those on record. */
  async lastUses(accountId: AccountId, keyIds: readonly Hash32[]): Promise<ReadonlyMap<string, Date>> {
    const { rows } = await sql<{ key: string; at: Date | null }>`
      select key, (
        select started_at from run_records where account_id = ${accountId} and key_id = key
        order by started_at desc limit 1
      ) as at from unnest(${keyIds}::text[]) key`.execute(this.#db);
    return new Map(rows.flatMap(({ key, at }) => (at === null ? [] : [[key, at] as const])));
  }

  /**
   * Sums of the account's runs and writes by day and key, newest day first.
   * @throws KeywrightError `invalid_value` for a page too far from the newest day.
   */
  async usage(
    accountId: AccountId,
    { from, to }: DaySpan,
    page: Page,
  ): Promise<{ readonly days: readonly DayUsage[]; readonly total: number }> {
    await recordEnds(this.#db);
    const { rows } = await sql<Partial<DayUsage> & { readonly total: number }>`with ran as (
        select day, key_id, runs, failed, cost_cents, duration_ms from run_days
        where account_id = ${accountId} and day between ${from}::date and ${to}::date
      ), changed as (
        select (created_at at time zone 'UTC')::date as day, coalesce(key_id, account_id) as key_id,
          count(*) as changes, -sum(amount_cents)::int8 as changes_cents
        from ledger_entries
        where account_id = ${accountId} and kind = 'write' and created_at >= ${from}::date::timestamp at time zone 'UTC'
          and created_at < (${to}::date + 1)::timestamp at time zone 'UTC'
        group by 1, 2
      ), days as materialized (
        select * from ran full join changed using (day, key_id)
      ), page as (
        select * from days order by day desc, key_id
        limit ${page.size} offset ${Math.min(page.number * page.size, MAX_PAGE_OFFSET + 1)}
      )
      select total, to_char(day, 'YYYY-MM-DD') as day, key_id as "keyId", coalesce(runs, 0) as runs,
        coalesce(failed, 0) as failed, coalesce(changes, 0) as changes, coalesce(changes_cents, 0) as "changesCents",
        coalesce(cost_cents, 0) as "costCents", coalesce(duration_ms, 0) as "durationMs"
      from (select count(*) as total from days) counted left join page on true
      order by page.day desc, key_id`.execute(this.#db);
    const total = rows[0]?.total ?? 0;
    const isPast = offsetOf(page, total, "to") === undefined;
    return { days: isPast ? [] : rows.map(({ total: _, ...day }) => day as DayUsage), total };
  }
}

const viewOf = (row: Pick<Selectable<RunRecordsTable>, (typeof SHOWN)[number]>): RunView => ({
  requestId: row.request_id,
  keyId: row.key_id as Hash32,
  cid: row.cid as Cid,
  durationMs: row.duration_ms,
  costCents: row.cost_cents,
  outcome: row.outcome as RunView["outcome"],
  pkpsUsed: row.pkps_used as Address[],
  startedAt: row.started_at,
  receiptSha256: row.receipt_sha256,
  triggerId: row.trigger_id ?? undefined,
  errorMessage: row.error_message ?? undefined,
});

const RECORDS_PER_TURN = 1_000;

/** Deletes older records, and messages older than those, in batches so that no statement takes long. */
export async function dropOldRuns(db: Db, keptDays: number, messageDays: number): Promise<void> {
  await recordEnds(db);
  while ((await forgetMessages(db, messageDays)) === RECORDS_PER_TURN);
  while ((await dropSome(db, keptDays)) === RECORDS_PER_TURN);
  while ((await dropDays(db, keptDays)) === RECORDS_PER_TURN);
}

async function forgetMessages(db: Db, keptDays: number): Promise<number> {
  const { numAffectedRows } = await sql`
    update run_records set error_message = null where run_id = any(array(
      select run_id from run_records
      where error_message is not null and started_at < now() - ${keptDays} * interval '1 day'
      order by started_at limit ${sql.lit(RECORDS_PER_TURN)} for update skip locked))`.execute(db);
  return Number(numAffectedRows ?? 0);
}

async function dropDays(db: Db, keptDays: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from run_days where ctid = any(array(
      select ctid from run_days where day < (now() at time zone 'UTC')::date - ${keptDays}::int
        limit ${sql.lit(RECORDS_PER_TURN)}))`.execute(db);
  return Number(numAffectedRows ?? 0);
}

async function dropSome(db: Db, keptDays: number): Promise<number> {
  const { rows } = await sql<{ dropped: number }>`
    with old as (
      select run_id from run_records where started_at < now() - ${keptDays} * interval '1 day' order by started_at
        limit ${RECORDS_PER_TURN} for update skip locked
    ), dropped as (
      delete from run_records using old where run_records.run_id = old.run_id
        returning account_id, key_id, action_hash, outcome
    ), less as materialized (
      select account_id, k, a, o, count(*) as runs
      from dropped, unnest(array['', key_id]) k, unnest(array['', action_hash]) a, unnest(array['', outcome]) o
      group by account_id, k, a, o
    ), held as materialized (
      select c.account_id, k, a, o, less.runs, c.runs - less.runs as remaining from run_counts c
      join less on c.account_id = less.account_id and c.key_id = k and c.action_hash = a and c.outcome = o
      order by c.account_id, k, a, o for update of c
    ), lowered as (
      update run_counts c set runs = c.runs - held.runs from held
      where c.account_id = held.account_id and c.key_id = k and c.action_hash = a and c.outcome = o
        and held.remaining > 0
    ), emptied as (
      delete from run_counts c using held
      where c.account_id = held.account_id and c.key_id = k and c.action_hash = a and c.outcome = o
        and held.remaining = 0
    )
    select count(*) as dropped from dropped`.execute(db);
  return rows[0]?.dropped ?? 0;
}
