/** The statement that begins a transaction on a lane, and what it does besides. */
import { sql, type RawBuilder } from "kysely";
import type { Db, Trx } from "../../store/database";
import { newSubmissionId, type TransactionRow, type WriteRow } from "./rows";
import { WRITE_IS_OPEN } from "./states";

/** A write, or a forward request, which is authorized by its signature and has no tag. */
export interface NewWrite extends Pick<
  WriteRow,
  "id" | "account_id" | "kind" | "calldata" | "tag" | "signer" | "idempotency_key" | "billed" | "request_id"
> {
  /** The turn at which the write was simulated. */
  readonly turn: number;
  /** The turn at which the signer's nonce was read. */
  readonly signers_turn: number | null;
}

export interface NewTransaction extends Pick<TransactionRow, "payer" | "instance_id" | "request_id"> {
  readonly gasLimit: bigint;
  readonly topUp?: { readonly toPayer: number; readonly amountWei: bigint };
}

/** Parts of one statement: a transaction is begun where `condition` holds after what is done before it. */
export interface Steps {
  readonly before?: RawBuilder<unknown>;
  readonly condition: RawBuilder<boolean>;
  readonly after?: RawBuilder<unknown>;
}

/** Takes the lane's next nonce and inserts a transaction with it; undefined where the condition does not hold. */
export async function beginInLane(
  db: Db | Trx,
  { payer, instance_id, request_id, gasLimit, topUp }: NewTransaction,
  { before = sql``, condition, after = sql`` }: Steps,
): Promise<TransactionRow | undefined> {
  const { rows } = await sql<TransactionRow>`
    with ${before} lane as (
      update lanes set next_nonce = next_nonce + 1 where payer = ${payer} and ${condition}
      returning next_nonce - 1 as nonce
    ), transaction as (
      insert into transactions
        (id, payer, nonce, purpose, state, gas_limit, to_payer, amount_wei, instance_id, request_id)
      select ${newSubmissionId()}, ${payer}::int4, nonce, ${topUp === undefined ? "writes" : "top_up"}, 'reserved',
        ${String(gasLimit)}::int8, ${topUp?.toPayer ?? null}::int4, ${topUp?.amountWei.toString() ?? null}::numeric,
        ${instance_id}, ${request_id}
      from lane returning *
    ) ${after} select * from transaction`.execute(db);
  return rows[0];
}

/**
 * Takes the turns of the writes' accounts and signers, and inserts the writes that have them. Turns are locked in the
 * order of their keys, here and wherever several are changed, so that two such statements cannot deadlock.
 */
export function newWrites(writes: readonly NewWrite[]): Steps {
  const wanted = JSON.stringify(writes.map((write, place) => ({ ...write, place })));
  return {
    before: sql`wanted as (
      select * from jsonb_to_recordset(${wanted}::jsonb) as w (id text, account_id text, kind text, turn int8,
        calldata text, tag text, idempotency_key text, billed boolean, request_id text, signer text,
        signers_turn int8, place int4)
    ), keys as (
      select account_id as key, turn from wanted where not exists (select from writes
        where idempotency_key = wanted.idempotency_key)
      union all select signer, signers_turn from wanted where signer is not null
    ), locked as (
      select keys.key, keys.turn from account_turns join keys on account_id = keys.key order by account_id
        for update of account_turns
    ), turn as (
      update account_turns set turn = account_turns.turn + 1 from locked
      where account_id = locked.key and account_turns.turn = locked.turn
        and not exists (select from writes where account_id = locked.key and ${WRITE_IS_OPEN})
        and not exists (select from writes where signer = locked.key and ${WRITE_IS_OPEN})
      returning account_id
    ), ready as (
      select wanted.* from wanted
      where account_id in (select account_id from turn) and (signer is null or signer in (select account_id from turn))
    ),`,
    condition: sql`not draining and exists (select from ready)`,
    after: sql`, carried as (
      insert into writes (id, account_id, kind, state, transaction_id, place, calldata, tag, signer, idempotency_key,
        billed, request_id)
      select ready.id, account_id, ready.kind, 'carried', transaction.id, row_number() over (order by place) - 1,
        calldata, tag, signer, idempotency_key, billed, ready.request_id
      from ready cross join transaction
    )`,
  };
}

/** Carries a write that waits for a transaction, unless another instance was first. */
export const waitingWrite = (id: string): Steps => ({
  before: sql`waiting as (
      select writes.id from writes join transactions on transactions.id = transaction_id
      where writes.id = ${id} and writes.state = 'waiting' and transactions.state in ('confirmed', 'displaced')
        for update of writes
    ),`,
  condition: sql`not draining and exists (select from waiting)`,
  after: sql`, carried as (
      update writes set state = 'carried', transaction_id = transaction.id, place = 0, updated_at = now()
      from transaction, waiting where writes.id = waiting.id
    )`,
});
