/**
 * Deletes old data: bytes of final writes, closed reservations, dead instances. Accounting data stays: every ledger
 * entry, and every submission with its kind, outcome and transaction. In small batches, so that no statement blocks
 * others.
 */
import { sql, type RawBuilder } from "kysely";
import { dropOldRuns } from "../credits/runRecords";
import type { Db } from "./database";
import { dropExpiredRequests } from "./idempotency";

export interface RetentionOptions {
  /** Days that the bytes of final writes and closed reservations are kept. */
  readonly detailDays: number;
  readonly runRecordsDays: number;
}

const AT_A_TIME = 500;
const IS_FINAL = sql<boolean>`submissions.state in ('confirmed', 'failed', 'expired', 'changed')`;

export async function dropOld(db: Db, { detailDays, runRecordsDays }: RetentionOptions): Promise<void> {
  await dropExpiredRequests(db);
  await dropOldRuns(db, runRecordsDays);
  await repeatedly(db, () => attemptsOfFinal(detailDays));
  await repeatedly(db, () => bytesOfFinalWrites(detailDays));
  await repeatedly(db, () => closedReservations(detailDays));
  await repeatedly(db, () => endedFirings(runRecordsDays));
  await sql`delete from instances where renewed_at < now() - interval '1 day'`.execute(db);
}

async function repeatedly(db: Db, piece: () => RawBuilder<{ dropped: number }>): Promise<void> {
  for (;;) {
    const { rows } = await piece().execute(db);
    if ((rows[0]?.dropped ?? 0) < AT_A_TIME) return;
  }
}

/** Signed transactions, also those that only filled a nonce or moved gas: nothing final is sent again. */
const attemptsOfFinal = (days: number): RawBuilder<{ dropped: number }> => sql`
  with old as (
    select hash from submission_attempts join submissions on submissions.id = submission_id
    where submission_attempts.created_at < now() - ${days} * interval '1 day' and ${IS_FINAL}
      and submissions.updated_at < now() - ${days} * interval '1 day'
    order by submission_attempts.created_at limit ${sql.lit(AT_A_TIME)} for update of submission_attempts skip locked
  ), dropped as (
    delete from submission_attempts using old where submission_attempts.hash = old.hash
      returning submission_attempts.hash
  )
  select count(*) as dropped from dropped`;

/** Calldata and tag: only writes without a final outcome are ever resent. */
const bytesOfFinalWrites = (days: number): RawBuilder<{ dropped: number }> => sql`
  with final as (
    select id from submissions where calldata is not null and ${IS_FINAL}
      and updated_at < now() - ${days} * interval '1 day'
      and (block_number is null or state = 'confirmed'
        or block_number <= (select min(number) from followed_blocks))
    order by updated_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), emptied as (
    update submissions set calldata = null, tag = null from final where submissions.id = final.id
      returning submissions.id
  )
  select count(*) as dropped from emptied`;

/** Keeps late settlements: they explain why an account may be below zero. */
const closedReservations = (days: number): RawBuilder<{ dropped: number }> => sql`
  with old as (
    select id from credit_reservations where state <> 'held' and not (given_back and state = 'settled')
      and closed_at < now() - ${days} * interval '1 day'
    order by closed_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from credit_reservations using old where credit_reservations.id = old.id returning credit_reservations.id
  )
  select count(*) as dropped from dropped`;

/** Firings of triggers, as long as the records of their runs; no cause may fire as late as that. */
const endedFirings = (days: number): RawBuilder<{ dropped: number }> => sql`
  with old as (
    select id from trigger_firings where state = 'ended' and ended_at < now() - ${days} * interval '1 day'
    order by ended_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from trigger_firings using old where trigger_firings.id = old.id returning trigger_firings.id
  )
  select count(*) as dropped from dropped`;
