/**
 * Due times become firings. Reading the due triggers, storing their firings and setting their next due times is one
 * transaction: however a relayer dies, each due time has been turned into one firing or is still to be.
 */
import { randomBytes } from "node:crypto";
import { sql, type RawBuilder } from "kysely";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { lastDue, nextDue } from "../../protocol/schedule";
import { causeKeyOf, type Schedule } from "../../protocol/trigger";
import type { Db, Trx } from "../store/database";

/** A due time takes a tenth of a millisecond to compute, and requests wait meanwhile. */
const AT_A_TIME = 100;

/** What becomes of the due times that have come. */
export interface Decided {
  readonly fireMs: number | undefined;
  /** The newest one that is not made up for. */
  readonly missedMs: number | undefined;
  readonly nextMs: number | undefined;
}

/**
 * Of several missed due times at most the last one fires, so that an outage ends in no burst.
 * @param noticedMs what was due then counts as noticed then, however long the others took that came before it
 */
export function decide(schedule: Schedule, dueMs: number, nowMs: number, noticedMs = nowMs): Decided {
  const last = lastDue(schedule, dueMs, nowMs) ?? dueMs;
  const nextMs = nextDue(schedule, last);
  const isLate = noticedMs - last > TRIGGER_LIMITS.skipAfterSeconds * 1_000;
  if (isLate && schedule.missed === "skip") return { fireMs: undefined, missedMs: last, nextMs };
  return { fireMs: last, missedMs: last === dueMs ? undefined : dueMs, nextMs };
}

export interface Work {
  readonly now: Date;
  readonly isDue: boolean;
  /** Firings wait, be it for a later time. */
  readonly isWaiting: boolean;
  /** Triggers will be due within the given time. */
  readonly isSoon: boolean;
  /** Logs may fire some. */
  readonly isWatching: boolean;
  /** Firings are under way on some relayer, or triggers wait for their keys to be attached. */
  readonly isOpen: boolean;
}

/** @param now SQL of the time, by default the database's */
export async function workOf(db: Db, soonMs: number, now: RawBuilder<Date> = sql<Date>`now()`): Promise<Work> {
  const { rows } = await sql<Work>`
    select looked.now, coalesce(first <= looked.now, false) as "isDue",
      exists (select from trigger_firings where state = 'waiting') as "isWaiting",
      coalesce(first <= looked.now + ${soonMs} * interval '1 millisecond', false) as "isSoon",
      watching is not null as "isWatching", running is not null or unattached is not null as "isOpen"
    from (select
      (select min(next_due) from triggers where state = 'active') as first,
      (select id from triggers where state = 'active' and kind = 'event' order by id limit 1) as watching,
      (select true from trigger_firings where state = 'running' order by instance_id limit 1) as running,
      (select id from triggers where state = 'unattached' order by id limit 1) as unattached
    ) as next, (select ${now} as now) as looked`.execute(db);
  const all = { isDue: true, isWaiting: true, isSoon: true, isWatching: true, isOpen: true };
  return rows[0] ?? { now: new Date(), ...all };
}

interface DueRow {
  readonly id: string;
  readonly account_id: string;
  readonly settings: { readonly schedule: Schedule };
  readonly next_due: Date;
  readonly now: Date;
}

/** Behind the triggers of an account that are due at the same time: where the next batch begins. */
export interface Place {
  readonly due: string;
  readonly account: string;
}

const FIRST: Place = { due: "-infinity", account: "" };

export interface Look {
  /** SQL of the time, by default the database's. */
  readonly now?: RawBuilder<Date> | undefined;
  /** Since when it has looked without a pause; default: now. */
  readonly noticedAt?: Date | undefined;
  readonly after?: Place | undefined;
}

export interface Batch {
  /** How many triggers were due. */
  readonly found: number;
  /** Where to go on; undefined if that was all. */
  readonly next: Place | undefined;
}

/**
 * Up to a hundred triggers that are due, of up to a hundred accounts alike, and then of those after them: thousands of
 * one account do not keep others' from being noticed.
 */
export function scheduleDue(db: Db, { now = sql<Date>`now()`, noticedAt, after = FIRST }: Look = {}): Promise<Batch> {
  return db.transaction().execute(async (trx) => {
    const { rows } = await dueAfter(after, now).execute(trx);
    const free = rows.filter(({ id }) => id !== null);
    const next = nextPlace(rows, free, after);
    if (free.length === 0) return { found: 0, next };
    const decided = decideAll(free, noticedAt);
    await storeFirings(trx, decided.flatMap(firingsOf), now);
    await storeNext(
      trx,
      decided.map(({ row, nextMs }) => ({ id: row.id, next: nextMs === undefined ? null : new Date(nextMs) })),
    );
    return { found: free.length, next };
  });
}

/** A place is an account's triggers that are due at the same time; `id` is null if none of them is free. */
interface FoundRow extends DueRow {
  readonly place: number;
  readonly of_account: string;
  readonly due: string;
  readonly each: number;
}

/** One step in the index for each place, however much is due there. */
function dueAfter({ due, account }: Place, now: RawBuilder<Date>): RawBuilder<FoundRow> {
  const most = sql.lit(AT_A_TIME);
  const isDue = sql`state = 'active' and next_due <= ${now}`;
  return sql<FoundRow>`
    with recursive places as (
      (select next_due, account_id, 1 as place from triggers
        where ${isDue} and (next_due, account_id) > (${due}::timestamptz, ${account}::text)
        order by next_due, account_id limit 1)
      union all
      select next.next_due, next.account_id, place + 1 from places cross join lateral (
        select next_due, account_id from triggers
        where ${isDue} and (next_due, account_id) > (places.next_due, places.account_id)
        order by next_due, account_id limit 1
      ) next where place < ${most}
    ), shared as materialized (
      select next_due, account_id, place, (${most} / count(*) over ())::int4 as each from places
    )
    select place, shared.account_id as of_account, shared.next_due::text as due, each, mine.*, ${now} as now
    from shared left join lateral (
      select id, account_id, settings, next_due from triggers
      where state = 'active' and next_due = shared.next_due and account_id = shared.account_id
      limit each for update skip locked
    ) mine on true order by place`;
}

/** From the first one again, until nothing is left behind. What another relayer has locked is its own to make. */
function nextPlace(rows: readonly FoundRow[], free: readonly FoundRow[], after: Place): Place | undefined {
  const last = rows.at(-1);
  if (free.length > 0 && last?.place === AT_A_TIME) return { due: last.due, account: last.of_account };
  const isCut = [...Map.groupBy(free, ({ place }) => place).values()].some((own) => own.length === own[0]?.each);
  return after !== FIRST || isCut ? FIRST : undefined;
}

/** Most of those that are due together have the same few schedules. */
function decideAll(
  rows: readonly DueRow[],
  noticedAt: Date | undefined,
): readonly (Decided & { readonly row: DueRow })[] {
  const known = new Map<string, Decided>();
  return rows.map((row) => {
    const { settings, next_due, now } = row;
    const name = `${JSON.stringify(settings.schedule)} ${next_due.getTime()}`;
    const decided =
      known.get(name) ?? decide(settings.schedule, next_due.getTime(), now.getTime(), noticedAt?.getTime());
    known.set(name, decided);
    return { row, ...decided };
  });
}

export interface NewFiring {
  readonly id: string;
  readonly triggerId: string;
  readonly accountId: string;
  readonly causeKey: string;
  readonly cause: unknown;
  readonly kind: string;
  readonly dueAt: Date;
  /** Set where nothing will run. */
  readonly outcome?: string;
}

export const newFiringId = (): string => randomBytes(16).toString("hex");

function firingsOf({ row, fireMs, missedMs }: Decided & { readonly row: DueRow }): NewFiring[] {
  const firing = (dueMs: number, outcome?: string): NewFiring => {
    const cause = { type: "schedule", dueAtSeconds: dueMs / 1_000 } as const;
    const id = newFiringId();
    const known = { id, triggerId: row.id, accountId: row.account_id, causeKey: causeKeyOf(cause), cause };
    return { ...known, kind: "schedule", dueAt: new Date(dueMs), ...(outcome === undefined ? {} : { outcome }) };
  };
  return [
    ...(missedMs === undefined ? [] : [firing(missedMs, "missed")]),
    ...(fireMs === undefined ? [] : [firing(fireMs)]),
  ];
}

/**
 * A cause that has a firing gets no second one. A log that has not fired and is in another block now, after a
 * reorganisation, is looked for there. Returns the ids of those stored.
 */
export async function storeFirings(
  db: Db,
  firings: readonly NewFiring[],
  now: RawBuilder<Date> = sql<Date>`now()`,
): Promise<readonly string[]> {
  if (firings.length === 0) return [];
  const { rows } = await sql<{ id: string }>`
    insert into trigger_firings (id, trigger_id, account_id, cause_key, cause, kind, state, due_at, not_before, outcome,
      ended_at)
    select id, trigger_id, account_id, cause_key, cause, kind,
      case when outcome is null then 'waiting' else 'ended' end, due_at, ${now}, outcome,
      case when outcome is null then null else now() end
    from json_to_recordset(${JSON.stringify(firings.map(rowOf))}::json) as f (id text, trigger_id text,
      account_id text, cause_key text, cause jsonb, kind text, due_at timestamptz, outcome text)
    on conflict (trigger_id, cause_key) do update set cause = excluded.cause, due_at = excluded.due_at,
        not_before = excluded.not_before, outcome = null, detail = null, ended_at = null,
        state = case trigger_firings.state when 'ended' then 'waiting' else trigger_firings.state end
      where trigger_firings.kind = 'event'
        and (trigger_firings.state <> 'ended' or trigger_firings.outcome = 'log_not_found')
    returning id`.execute(db);
  return rows.map(({ id }) => id);
}

const rowOf = ({ id, triggerId, accountId, causeKey, cause, kind, dueAt, outcome }: NewFiring): object => ({
  id,
  trigger_id: triggerId,
  account_id: accountId,
  cause_key: causeKey,
  cause,
  kind,
  due_at: dueAt,
  outcome,
});

async function storeNext(
  trx: Trx,
  next: readonly { readonly id: string; readonly next: Date | null }[],
): Promise<void> {
  await sql`update triggers set next_due = f.next
    from json_to_recordset(${JSON.stringify(next)}::json) as f (id text, next timestamptz)
    where triggers.id = f.id`.execute(trx);
}
