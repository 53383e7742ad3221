/**
 * Records of runs: who ran what with which PKPs, how long it took, what it cost and how it ended. Written by the statement that closes the run's reservation,
 * so that the records and the ledger never differ; totals are kept beside them, so that no list counts its rows.
 */
import { sql, type RawBuilder } from "kysely";
import type { AccountId, Address, Cid, Hash32 } from "../../protocol/ids";
import type { Db } from "../store/database";
import type { DayUsage, DaySpan, Page, RunFilter, RunRecord, RunView } from "./types";

/**
 * Common table expressions that write the record of a run and its sums, to be added behind one called `account`, which gives `cost_cents` of what the run was
 * charged now (no row: nothing). They read it first, so that the account's row is locked before the rows of its sums. A run is recorded once.
 */
export function recordedBy(runId: string, record: RunRecord): RawBuilder<unknown> {
  const { accountId, keyId, actionHash, cid, outcome, requestId, durationMs, pkpsUsed, startedAt } = record;
  return sql`, recorded as (
      insert into run_records (run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms, cost_cents, pkps_used, started_at)
      select ${runId}, ${accountId}, ${keyId}, ${actionHash}, ${cid}, ${outcome}, ${requestId}, ${durationMs}::float8,
        coalesce((select cost_cents from account), 0), ${JSON.stringify(pkpsUsed)}::jsonb, ${startedAt}::timestamptz
      on conflict (run_id) do nothing
      returning account_id, key_id, action_hash, outcome, cost_cents, duration_ms, started_at
    ), counted as (
      insert into run_counts (account_id, key_id, action_hash, outcome, runs)
      select account_id, k, a, o, 1 from recorded, unnest(array['', key_id]) k, unnest(array['', action_hash]) a, unnest(array['', outcome]) o order by k, a, o
      on conflict (account_id, key_id, action_hash, outcome) do update set runs = run_counts.runs + 1
      returning 1
    ), summed as (
      insert into run_days (account_id, day, key_id, runs, failed, cost_cents, duration_ms)
      select account_id, (started_at at time zone 'UTC')::date, key_id, 1, (outcome <> 'succeeded')::int, cost_cents, duration_ms
      from recorded where exists (select from counted)
      on conflict (account_id, day, key_id) do update set runs = run_days.runs + 1, failed = run_days.failed + excluded.failed,
        cost_cents = run_days.cost_cents + excluded.cost_cents, duration_ms = run_days.duration_ms + excluded.duration_ms
    )`;
}

const SHOWN = ["request_id", "key_id", "cid", "duration_ms", "cost_cents", "outcome", "pkps_used", "started_at"] as const;

/** A run by the name it was reserved under. */
export async function readRun(db: Db, runId: string): Promise<{ run?: RunView } | undefined> {
  const row = await db.selectFrom("run_records").select(SHOWN).where("run_id", "=", runId).executeTakeFirst();
  if (row !== undefined) return { run: viewOf(row) };
  const reserved = await db.selectFrom("credit_reservations").select("id").where("id", "=", runId).executeTakeFirst();
  return reserved === undefined ? undefined : {};
}

/** Newest first. */
export async function readRuns(db: Db, accountId: AccountId, filter: RunFilter, page: Page): Promise<{ runs: readonly RunView[]; total: number }> {
  let matching = db.selectFrom("run_records").where("account_id", "=", accountId);
  if (filter.keyId !== undefined) matching = matching.where("key_id", "=", filter.keyId);
  if (filter.actionHash !== undefined) matching = matching.where("action_hash", "=", filter.actionHash);
  if (filter.outcome !== undefined) matching = matching.where("outcome", "=", filter.outcome);
  const rows = await matching
    .select(SHOWN)
    .orderBy("started_at", "desc")
    .orderBy("run_id")
    .limit(page.size)
    .offset(page.number * page.size)
    .execute();
  const count = await db
    .selectFrom("run_counts")
    .select("runs")
    .where("account_id", "=", accountId)
    .where("key_id", "=", filter.keyId ?? "")
    .where("action_hash", "=", filter.actionHash ?? "")
    .where("outcome", "=", filter.outcome ?? "")
    .executeTakeFirst();
  return { runs: rows.map(viewOf), total: count?.runs ?? 0 };
}

interface RunRow {
  readonly request_id: string;
  readonly key_id: string;
  readonly cid: string;
  readonly duration_ms: number;
  readonly cost_cents: number;
  readonly outcome: string;
  readonly pkps_used: string[];
  readonly started_at: Date;
}

const viewOf = (row: RunRow): RunView => ({
  requestId: row.request_id,
  keyId: row.key_id as Hash32,
  cid: row.cid as Cid,
  durationMs: row.duration_ms,
  costCents: row.cost_cents,
  outcome: row.outcome as RunView["outcome"],
  pkpsUsed: row.pkps_used as Address[],
  startedAt: row.started_at,
});

/** Newest day first. */
export async function readUsage(db: Db, accountId: AccountId, { from, to }: DaySpan, page: Page): Promise<{ days: readonly DayUsage[]; total: number }> {
  const { rows } = await sql<DayUsage & { total: number }>`
    select to_char(day, 'YYYY-MM-DD') as day, key_id as "keyId", runs, failed, cost_cents as "costCents", duration_ms as "durationMs"
    from run_days where account_id = ${accountId} and day between ${from}::date and ${to}::date
    order by run_days.day desc, key_id limit ${page.size} offset ${page.number * page.size}`.execute(db);
  const { rows: counted } = await sql<{ total: number }>`
    select count(*) as total from run_days where account_id = ${accountId} and day between ${from}::date and ${to}::date`.execute(db);
  return { days: rows, total: counted[0]?.total ?? 0 };
}

const RECORDS_PER_TURN = 1_000;

/** Drops what is older, so many at a time that no statement takes long. */
export async function dropOldRuns(db: Db, keptDays: number): Promise<void> {
  while ((await dropSome(db, keptDays)) === RECORDS_PER_TURN);
  await sql`delete from run_days where day < (now() at time zone 'UTC')::date - ${keptDays}::int`.execute(db);
}

async function dropSome(db: Db, keptDays: number): Promise<number> {
  const { rows } = await sql<{ dropped: number }>`
    with old as (
      select run_id from run_records where started_at < now() - ${keptDays} * interval '1 day' order by started_at limit ${RECORDS_PER_TURN} for update skip locked
    ), dropped as (
      delete from run_records using old where run_records.run_id = old.run_id returning account_id, key_id, action_hash, outcome
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
      where c.account_id = held.account_id and c.key_id = k and c.action_hash = a and c.outcome = o and held.remaining > 0
    ), emptied as (
      delete from run_counts c using held
      where c.account_id = held.account_id and c.key_id = k and c.action_hash = a and c.outcome = o and held.remaining = 0
    )
    select count(*) as dropped from dropped`.execute(db);
  return rows[0]?.dropped ?? 0;
}
