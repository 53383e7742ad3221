/** The statements that begin transactions. */
import { sql, type RawBuilder } from "kysely";
import type { Db, Trx } from "../../store/database";
import { newSubmissionId, type Carrier, type TransactionRow, type WriteRow } from "./rows";
import { WRITE_IS_OPEN } from "./states";

/** A write, or a forward request, which is authorized by its signature and has no tag. */
export interface NewWrite extends Pick<WriteRow, "id" | "account_id" | "kind" | "calldata" | "tag" | "signer"> {
  readonly idempotency_key: string | null;
  readonly billed: boolean;
  readonly request_id: string | null;
  /** The turn at which the write was simulated. */
  readonly turn: number;
  /** The turn at which the signer's nonce was read. */
  readonly signers_turn: number | null;
}

/** Writes, or forward requests, that share a transaction; often a single one. */
export interface NewCarrier {
  readonly payer: number;
  readonly gasLimit: bigint;
  readonly writes: readonly NewWrite[];
}

interface NewTransaction extends Pick<TransactionRow, "payer" | "instance_id"> {
  readonly gasLimit: bigint;
  readonly topUp?: { readonly toPayer: number; readonly amountWei: bigint };
  readonly requestId: string | null;
}

/** Steps of a statement: where `condition` holds, takes the lane's next nonce and inserts a transaction with it. */
export function nextInLane(
  { payer, instance_id, gasLimit, topUp, requestId }: NewTransaction,
  condition: RawBuilder<boolean>,
): RawBuilder<unknown> {
  return sql`lane as (
      update lanes set next_nonce = next_nonce + 1 where payer = ${payer} and ${condition}
      returning next_nonce - 1 as nonce
    ), transaction as (
      insert into transactions
        (id, payer, nonce, purpose, state, gas_limit, to_payer, amount_wei, instance_id, request_id)
      select ${newSubmissionId()}, ${payer}::int4, nonce, ${topUp === undefined ? "writes" : "top_up"}, 'reserved',
        ${String(gasLimit)}::int8, ${topUp?.toPayer ?? null}::int4, ${topUp?.amountWei.toString() ?? null}::numeric,
        ${instance_id}, ${requestId}
      from lane returning *
    )`;
}

/**
 * Takes the turns of the writes' accounts and signers and the lane's nonce, and inserts the rows; undefined when no
 * write is left, or the lane is draining. Turns are locked in the order of their keys, here and wherever several are
 * changed, so that two such statements cannot deadlock.
 */
export async function insertCarrier(
  trx: Db | Trx,
  instanceId: string,
  { payer, gasLimit, writes }: NewCarrier,
): Promise<Carrier | undefined> {
  const wanted = JSON.stringify(writes.map((write, place) => ({ ...write, place })));
  const requestId = writes[0]?.request_id ?? null;
  const { rows } = await sql<WriteRow & { readonly nonce: number }>`
    with wanted as (
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
      update account_turns set turn = account_turns.turn + 1, payer = ${payer} from locked
      where account_id = locked.key and account_turns.turn = locked.turn
        and not exists (select from writes where account_id = locked.key and ${WRITE_IS_OPEN})
        and not exists (select from writes where signer = locked.key and ${WRITE_IS_OPEN})
      returning account_id
    ), ready as (
      select wanted.* from wanted
      where account_id in (select account_id from turn) and (signer is null or signer in (select account_id from turn))
    ), ${nextInLane(
      { payer, gasLimit, instance_id: instanceId, requestId },
      sql`not draining and exists (select from ready)`,
    )}, carried as (
      insert into writes (id, account_id, kind, state, transaction_id, place, calldata, tag, signer, idempotency_key,
        billed, request_id)
      select ready.id, account_id, ready.kind, 'carried', transaction.id, row_number() over (order by place) - 1,
        calldata, tag, signer, idempotency_key, billed, ready.request_id
      from ready cross join transaction
      returning *
    )
    select carried.*, transaction.nonce from carried cross join transaction order by place`.execute(trx);
  const [first] = rows;
  if (first === undefined) return undefined;
  const { transaction_id: id, nonce, created_at } = first;
  const transaction = { ...NEW, id, payer, nonce, gas_limit: Number(gasLimit), instance_id: instanceId };
  return {
    // Inserted by the same statement, hence with the same time.
    transaction: { ...transaction, request_id: requestId, created_at, updated_at: created_at },
    writes: rows.map(({ nonce: _nonce, ...write }) => write),
  };
}

const NEW = {
  purpose: "writes",
  state: "reserved",
  to_payer: null,
  amount_wei: null,
  abandon: false,
  hash: null,
  block_number: null,
  block_hash: null,
} as const;
