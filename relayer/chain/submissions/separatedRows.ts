/** Gives each member of a batch that failed as a whole a nonce of its own. */
import { sql } from "kysely";
import type { Trx } from "../../store/database";
import type { SubmissionRow } from "./rows";
import { IS_OPEN } from "./states";

export interface Alone {
  readonly id: string;
  readonly gasLimit: bigint;
}

/**
 * The batch is cancelled, so that it is not sent again if a reorg drops the block in which it failed. None when the lane
 * is draining.
 */
export async function separateMembers(
  trx: Trx,
  instanceId: string,
  { id, payer }: SubmissionRow,
  members: readonly Alone[],
): Promise<readonly SubmissionRow[]> {
  const alone = members.map(({ id: member, gasLimit }, place) => ({ id: member, gas: gasLimit.toString(), place }));
  const { rows } = await sql<SubmissionRow>`
    with alone as (
      select * from jsonb_to_recordset(${JSON.stringify(alone)}::jsonb) as a (id text, gas int8, place int4)
    ), lane as (
      update lanes set next_nonce = next_nonce + ${alone.length}::int4 where payer = ${payer} and not draining
      returning next_nonce - ${alone.length}::int4 as first
    ), batch as (
      update submissions set cancelled = true where id = ${id}
    )
    update submissions set batch_id = null, place = null, nonce = lane.first + alone.place, gas_limit = alone.gas, state = 'reserved',
      instance_id = ${instanceId}, updated_at = now()
    from alone cross join lane
    where submissions.id = alone.id and submissions.batch_id = ${id} and ${IS_OPEN}
    returning submissions.*`.execute(trx);
  return rows;
}
