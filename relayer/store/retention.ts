/**
 * Deletes old data: bytes of final writes, closed reservations, dead instances. Accounting data stays: every ledger
 * entry, and every write with its kind, outcome and transaction. In small batches, so that no statement blocks
 * others.
 */
import { sql, type RawBuilder } from "kysely";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { dropOldRuns } from "../credits/runRecords";
import type { Db } from "./database";
import { dropExpiredRequests } from "./idempotency";
import { AT_A_TIME, inPieces, type Piece } from "./pieces";

export interface RetentionOptions {
  /** Days that the bytes of final writes, closed reservations and messages of failed runs are kept. */
  readonly detailDays: number;
  readonly runRecordsDays: number;
}

const IS_FINAL = sql<boolean>`transactions.state in ('confirmed', 'displaced', 'dropped')`;

/** Each step by itself: one that fails keeps none of the others. Throws the first failure. */
export async function dropOld(db: Db, { detailDays, runRecordsDays }: RetentionOptions): Promise<void> {
  const steps = [
    () => dropExpiredRequests(db),
    () => dropOldRuns(db, runRecordsDays, detailDays),
    () => inPieces(db, () => attemptsOfFinal(detailDays)),
    () => inPieces(db, () => bytesOfFinalWrites(detailDays)),
    () => inPieces(db, () => closedReservations(detailDays)),
    () => inPieces(db, () => oldMessages(Math.max(detailDays, LEAST_MESSAGE_DAYS))),
    () => dropUnasked(db),
    () => inPieces(db, () => PAST_EXPIRIES),
    () => inPieces(db, () => messagesOfFirings(detailDays)),
    () => inPieces(db, () => endedFirings(runRecordsDays)),
    () => inPieces(db, () => triggersOfNothing(IS_DELETED)),
    () =>
      inPieces(db, () => triggersOfNothing(isUnattachedFor(Math.min(runRecordsDays, TRIGGER_LIMITS.unattachedDays)))),
    () => inPieces(db, () => DEAD_INSTANCES),
    () => sql`delete from mint_counts where counted_at < now() - interval '7 days'`.execute(db),
  ];
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/** Longer than messages are tried again, and as long as they may be replayed. */
const LEAST_MESSAGE_DAYS = 7;
const UNASKED_HOURS = 1;
const DAY_SECONDS = 24 * 3600;

const PAST_EXPIRIES: Piece = sql`
  with old as (
    select key_id, expires_at from key_expiries
    where expires_at < floor(extract(epoch from now()))::int8 - ${sql.lit(DAY_SECONDS)}
    order by expires_at limit ${sql.lit(AT_A_TIME)}
  ), dropped as (
    delete from key_expiries using old
      where key_expiries.key_id = old.key_id and key_expiries.expires_at = old.expires_at returning old.key_id
  )
  select count(*) as changed from dropped`;

const DEAD_INSTANCES: Piece = sql`
  with old as (
    select id from instances where renewed_at < now() - interval '1 day' limit ${sql.lit(AT_A_TIME)}
  ), dropped as (
    delete from instances using old where instances.id = old.id returning old.id
  )
  select count(*) as changed from dropped`;

/** Messages to webhooks. */
const oldMessages = (days: number): Piece => sql`
  with old as (
    select place from webhook_events where created_at < now() - ${days} * interval '1 day'
    order by created_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from webhook_events using old where webhook_events.place = old.place returning webhook_events.place
  )
  select count(*) as changed from dropped`;

/** Webhooks without a URL whose messages nobody fetches any more. */
async function dropUnasked(db: Db): Promise<void> {
  const isUnasked = sql`url is null and asked_at < now() - ${sql.lit(UNASKED_HOURS)} * interval '1 hour'`;
  for (;;) {
    const { rows } = await sql<{ id: string }>`select id from webhooks where ${isUnasked}
      order by asked_at limit ${sql.lit(AT_A_TIME)}`.execute(db);
    for (const { id } of rows) await deleteWebhook(db, id, isUnasked);
    if (rows.length < AT_A_TIME) return;
  }
}

/** Its messages first, which may be millions. */
export async function deleteWebhook(db: Db, id: string, isStill = sql`true`): Promise<void> {
  const { rows } = await sql`update webhooks set state = 'off', off_reason = coalesce(off_reason, 'owner')
    where id = ${id} and ${isStill} returning id`.execute(db);
  if (rows.length === 0) return;
  await inPieces(
    db,
    () => sql`
    with dropped as (
      delete from webhook_deliveries where webhook_id = ${id} and place = any(array(
        select place from webhook_deliveries where webhook_id = ${id} order by place limit ${sql.lit(AT_A_TIME)}))
      returning place
    )
    select count(*) as changed from dropped`,
  );
  await sql`delete from webhooks where id = ${id}`.execute(db);
}

/** Counted from when blocks were last read: what an operator may yet have to take back still has its bytes. */
const daysAgo = (days: number): RawBuilder<Date> =>
  sql<Date>`(select max(read_at) from followed_blocks) - ${days} * interval '1 day'`;

/** Signed transactions: nothing final is sent again. */
const attemptsOfFinal = (days: number): Piece => sql`
  with old as (
    select attempts.hash from attempts join transactions on transactions.id = transaction_id
    where attempts.created_at < ${daysAgo(days)} and ${IS_FINAL} and transactions.updated_at < ${daysAgo(days)}
    order by attempts.created_at limit ${sql.lit(AT_A_TIME)} for update of attempts skip locked
  ), dropped as (
    delete from attempts using old where attempts.hash = old.hash returning attempts.hash
  )
  select count(*) as changed from dropped`;

/** Calldata and tag: only writes without a final outcome are ever resent. */
const bytesOfFinalWrites = (days: number): Piece => sql`
  with final as (
    select writes.id from writes join transactions on transactions.id = transaction_id
    where calldata is not null and writes.state in ('done', 'failed', 'abandoned') and ${IS_FINAL}
      and writes.updated_at < ${daysAgo(days)}
    order by writes.updated_at limit ${sql.lit(AT_A_TIME)} for update of writes skip locked
  ), emptied as (
    update writes set calldata = null, tag = null from final where writes.id = final.id returning writes.id
  )
  select count(*) as changed from emptied`;

/** Keeps late settlements: they explain why an account may be below zero. */
const closedReservations = (days: number): Piece => sql`
  with old as (
    select id from credit_reservations where state <> 'held' and not (given_back and state = 'settled')
      and closed_at < now() - ${days} * interval '1 day'
    order by closed_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from credit_reservations using old where credit_reservations.id = old.id returning credit_reservations.id
  )
  select count(*) as changed from dropped`;

/** Firings of triggers, as long as the records of their runs; no cause may fire as late as that. */
const endedFirings = (days: number): Piece => sql`
  with old as (
    select id from trigger_firings where state = 'ended' and ended_at < now() - ${days} * interval '1 day'
    order by ended_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from trigger_firings using old where trigger_firings.id = old.id returning trigger_firings.id
  )
  select count(*) as changed from dropped`;

/** Of runs of triggers, as those in the records of runs. */
const messagesOfFirings = (days: number): Piece => sql`
  with old as (
    select id from trigger_firings where detail is not null and ended_at < now() - ${days} * interval '1 day'
    order by ended_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), emptied as (
    update trigger_firings set detail = null from old where trigger_firings.id = old.id returning trigger_firings.id
  )
  select count(*) as changed from emptied`;

/** Deleted triggers without firings, and those whose keys nobody has attached in all that time. */
const triggersOfNothing = (which: RawBuilder<boolean>): Piece => sql`
  with old as (
    select id from triggers where ${which}
      and not exists (select from trigger_firings where trigger_id = triggers.id)
    limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from triggers using old where triggers.id = old.id returning triggers.id
  )
  select count(*) as changed from dropped`;
const IS_DELETED = sql<boolean>`state = 'deleted'`;
const isUnattachedFor = (days: number): RawBuilder<boolean> =>
  sql<boolean>`state = 'unattached' and created_at < now() - ${days} * interval '1 day'`;
