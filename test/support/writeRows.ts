/** Rows of a write and the transaction that carries it, for tests of queries. */
import { sql } from "kysely";
import type { TransactionState } from "../../relayer/chain/submissions/states";
import type { Db } from "../../relayer/store/database";

export interface WriteInStore {
  readonly id: string;
  readonly account?: string;
  readonly payer: number;
  readonly nonce: number;
  /** Of the transaction. A write that it carried out is done. */
  readonly state: TransactionState;
  readonly block?: { readonly number: number; readonly hash: string };
}

export async function insertWrite(
  db: Db,
  { id, account = "a", payer, nonce, state, block }: WriteInStore,
): Promise<void> {
  await sql`insert into transactions (id, payer, nonce, purpose, state, gas_limit, instance_id, block_number,
      block_hash)
    values (${`of ${id}`}, ${payer}, ${nonce}, 'writes', ${state}, 21000, 'elsewhere', ${block?.number ?? null},
      ${block?.hash ?? null})`.execute(db);
  const isDone = state === "mined" || state === "confirmed";
  await sql`insert into writes (id, account_id, kind, state, transaction_id, place, billed)
    values (${id}, ${account}, 'add_group', ${isDone ? "done" : "carried"}, ${`of ${id}`}, 0, false)`.execute(db);
}

export async function insertAttempt(db: Db, transactionId: string, hash: string): Promise<void> {
  await sql`insert into attempts (hash, transaction_id, is_noop, raw, max_fee, priority_fee)
    values (${hash}, ${transactionId}, false, '0x', 1, 1)`.execute(db);
}
