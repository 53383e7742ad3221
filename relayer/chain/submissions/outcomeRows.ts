/** The statement that stores the outcomes of a unit. */
import { sql } from "kysely";
import type { Db, Trx } from "../../store/database";
import { sameResult } from "../abi/receipts";
import type { SubmissionFailure, WriteResult } from "../types";
import type { Outcome, SubmissionRow } from "./rows";
import { IS_OPEN } from "./states";

/** The rows that were still open and now have their outcome. */
export async function writeOutcomes(
  trx: Db | Trx,
  rows: readonly SubmissionRow[],
  outcomes: ReadonlyMap<string, Outcome>,
): Promise<SubmissionRow[]> {
  const ends = rows.flatMap((row) => {
    const outcome = outcomes.get(row.id);
    return outcome === undefined ? [] : [endOf(row, outcome)];
  });
  const { rows: ended } = await sql<SubmissionRow>`
    with ends as (
      select * from jsonb_to_recordset(${JSON.stringify(ends)}::jsonb) as e (id text, state text, hash text,
        block int8, "blockHash" text, result jsonb,
        error jsonb, charged boolean, "isFirst" boolean)
    ), ended as (
      update submissions set state = ends.state, transaction_hash = ends.hash, block_number = ends.block,
        block_hash = ends."blockHash", result = ends.result,
        error = ends.error, charged = submissions.charged or ends.charged, instance_id = null, updated_at = now()
      from ends
      where submissions.id = ends.id and ${IS_OPEN} and (submissions.before is null) = ends."isFirst"
      returning submissions.*
    ), locked as (
      select account_turns.account_id, ended.block_number from account_turns
        join ended on account_turns.account_id = ended.account_id
      where ended.block_number is not null order by account_turns.account_id for update of account_turns
    ), seen as (
      update account_turns set last_block = greatest(last_block, locked.block_number) from locked
      where account_turns.account_id = locked.account_id
    )
    select * from ended`.execute(trx);
  return ended;
}

/** The values a row gets, for the one statement that writes a whole unit. */
function endOf(row: SubmissionRow, { state, transactionHash, block, result, error, charged }: Outcome): object {
  return {
    id: row.id,
    state: row.before === null || isSameAnswer(row.before, { result, error }) ? state : "changed",
    hash: transactionHash ?? null,
    block: block?.number ?? null,
    blockHash: block?.hash ?? null,
    result: result ?? null,
    error: error ?? null,
    charged,
    isFirst: row.before === null,
  };
}

type Answered = NonNullable<SubmissionRow["before"]>;

function isSameAnswer(
  before: Answered,
  now: { result?: WriteResult | undefined; error?: SubmissionFailure | undefined },
): boolean {
  return before.error?.code === now.error?.code && sameResult(before.result as WriteResult | undefined, now.result);
}
