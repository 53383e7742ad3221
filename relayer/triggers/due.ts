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

/** Of several missed due times at most the last one fires, so that an outage ends in no burst. */
export function decide(schedule: Schedule, dueMs: number, nowMs: number): Decided {
  const last = lastDue(schedule, dueMs, nowMs) ?? dueMs;
  const nextMs = nextDue(schedule, last);
  const isLate = nowMs - last > TRIGGER_LIMITS.skipAfterSeconds * 1_000;
  if (isLate && schedule.missed === "skip") return { fireMs: undefined, missedMs: last, nextMs };
  return { fireMs: last, missedMs: last === dueMs ? undefined : dueMs, nextMs };
}

export interface Work {
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

export async function workOf(db: Db, soonMs: number): Promise<Work> {
  const { rows } = await sql<Work>`
    select coalesce(first <= now(), false) as "isDue",
      exists (select from trigger_firings where state = 'waiting') as "isWaiting",
      coalesce(first <= now() + ${soonMs} * interval '1 millisecond', false) as "isSoon",
      watching is not null as "isWatching", running is not null or unattached is not null as "isOpen"
    from (select
      (select min(next_due) from triggers where state = 'active') as first,
      (select id from triggers where state = 'active' and kind = 'event' order by id limit 1) as watching,
      (select true from trigger_firings where state = 'running' order by instance_id limit 1) as running,
      (select id from triggers where state = 'unattached' order by id limit 1) as unattached
    ) as next`.execute(db);
  return rows[0] ?? { isDue: true, isWaiting: true, isSoon: true, isWatching: true, isOpen: true };
}

interface DueRow {
  readonly id: string;
  readonly account_id: string;
  readonly settings: { readonly schedule: Schedule };
  readonly next_due: Date;
  readonly now: Date;
}

/** Returns how many triggers were due. @param now SQL of the time, by default the database's */
export function scheduleDue(db: Db, now: RawBuilder<Date> = sql<Date>`now()`): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const { rows } = await sql<DueRow>`
      select id, account_id, settings, next_due, ${now} as now from triggers
      where state = 'active' and next_due <= ${now}
      order by next_due limit ${sql.lit(AT_A_TIME)} for update skip locked`.execute(trx);
    if (rows.length === 0) return 0;
    const decided = decideAll(rows);
    await storeFirings(trx, decided.flatMap(firingsOf), now);
    await storeNext(
      trx,
      decided.map(({ row, nextMs }) => ({ id: row.id, next: nextMs === undefined ? null : new Date(nextMs) })),
    );
    return rows.length;
  });
}

/** Most of those that are due together have the same few schedules. */
function decideAll(rows: readonly DueRow[]): readonly (Decided & { readonly row: DueRow })[] {
  const known = new Map<string, Decided>();
  return rows.map((row) => {
    const { settings, next_due, now } = row;
    const name = `${JSON.stringify(settings.schedule)} ${next_due.getTime()}`;
    const decided = known.get(name) ?? decide(settings.schedule, next_due.getTime(), now.getTime());
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
