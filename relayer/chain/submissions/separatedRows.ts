/** The statements that give the members of a failed batch nonces of their own. */
import { sql } from "kysely";
import type { Db, Trx } from "../../store/database";
import type { SubmissionRow } from "./rows";
import { IS_OPEN, OPEN_LITERALS } from "./states";

/** A batch whose transaction failed as a whole, with members that wait to be sent alone. */
export interface FailedBatch {
  readonly id: string;
  readonly transactionHash: string;
  readonly block: number;
  readonly blockHash: string;
  /** Its members are forward requests, which the forwarder's nonces keep from being executed twice. */
  readonly ofForwards: boolean;
}

export interface Alone {
  readonly id: string;
  readonly payer: number;
  readonly gasLimit: bigint;
}

const BATCH_IS_OPEN = sql<boolean>`batch.state in (${OPEN_LITERALS})`;

/**
 * Batches of payers' writes only once the follower is `depth` blocks past them, since it reopens submissions in blocks
 * that are no longer canonical; all batches of forward requests.
 */
export async function failedBatches(db: Db, depth: number): Promise<readonly FailedBatch[]> {
  const { rows } = await sql<FailedBatch>`
    select distinct batch.id, batch.transaction_hash as "transactionHash", batch.block_number as block,
      batch.block_hash as "blockHash",
      submissions.signer is not null as "ofForwards"
    from submissions join submissions as batch on batch.id = submissions.batch_id
    where ${IS_OPEN} and submissions.batch_id is not null and not ${BATCH_IS_OPEN}
      and (submissions.signer is not null or batch.block_number + ${depth}::int8 <= (select max(number)
        from followed_blocks))
    order by block`.execute(db);
  return rows;
}

/**
 * Undefined when the batch was reopened by a reorg, the member has left it, or the lane is draining. The batch is
 * cancelled, so that it is not sent again if a reorg beyond finality drops it.
 */
export async function putBack(
  db: Db,
  instanceId: string,
  batch: FailedBatch,
  { id, payer, gasLimit }: Alone,
): Promise<SubmissionRow | undefined> {
  const { rows } = await sql<SubmissionRow>`
    with locked as (${lockedMember(batch, id)}),
    lane as (
      update lanes set next_nonce = next_nonce + 1 where payer = ${payer} and not draining and exists (select
        from locked)
      returning next_nonce - 1 as nonce
    ), cancelled as (
      update submissions set cancelled = true from lane where id = ${batch.id}
    )
    update submissions set batch_id = null, place = null, payer = ${payer}::int4, nonce = lane.nonce,
      gas_limit = ${gasLimit.toString()}::int8,
      state = 'reserved', instance_id = ${instanceId}, updated_at = now()
    from lane where submissions.id = ${id} returning submissions.*`.execute(db);
  return rows[0];
}

/** Locks member and batch until the transaction ends; true if the batch has failed and the member is still in it. */
export async function lockMember(trx: Trx, batch: FailedBatch, id: string): Promise<boolean> {
  const { rows } = await lockedMember(batch, id).execute(trx);
  return rows.length > 0;
}

const lockedMember = (batch: FailedBatch, id: string) => sql<{ readonly id: string }>`
  select submissions.id from submissions join submissions as batch on batch.id = submissions.batch_id
  where submissions.id = ${id} and batch.id = ${batch.id} and batch.block_hash = ${batch.blockHash} and ${IS_OPEN}
    and not ${BATCH_IS_OPEN}
  for update of submissions, batch`;
