/**
 * The statement that begins a transaction: takes the turns of its writes' accounts and signers and the lane's nonce,
 * and inserts the rows. Turns are locked in the order of their keys, here and wherever several are changed, so that two
 * such statements cannot deadlock.
 */
import { sql } from "kysely";
import type { AccountId, Address } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import type { SubmissionId } from "../types";
import { newSubmissionId, type Carrier, type TransactionRow, type WriteRow } from "./rows";
import { WRITE_IS_OPEN } from "./states";

export interface NewWrite {
  readonly id: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  /** The turn at which the write was simulated. */
  readonly turn: number;
  readonly calldata: string;
  /** Null for a forward request, which is authorized by its signature. */
  readonly tag: string | null;
  /** Of a forward request: its signer, and the turn at which its nonce was read. */
  readonly signer?: { readonly address: Address; readonly turn: number };
  readonly idempotencyKey: string | undefined;
  readonly billed: boolean;
  readonly requestId: string | undefined;
}

/** Writes, or forward requests, that share a transaction; often a single one. */
export interface NewCarrier {
  readonly payer: number;
  readonly gasLimit: bigint;
  readonly writes: readonly NewWrite[];
}

interface Begun extends WriteRow {
  readonly nonce: number;
  readonly begun_at: Date;
}

/** Undefined when no write is left, or the lane is draining. */
export async function insertCarrier(
  trx: Db | Trx,
  instanceId: string,
  { payer, gasLimit, writes }: NewCarrier,
): Promise<Carrier | undefined> {
  const id = newSubmissionId();
  const requestId = writes[0]?.requestId ?? null;
  const wanted = writes.map(({ idempotencyKey = null, requestId: of = null, signer, ...write }, place) => ({
    ...write,
    idempotencyKey,
    requestId: of,
    signer: signer?.address ?? null,
    signersTurn: signer?.turn ?? null,
    place,
  }));
  const { rows } = await sql<Begun>`
    with wanted as (
      select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as w (id text, "accountId" text, kind text,
        turn int8, calldata text, tag text, "idempotencyKey" text, billed boolean, "requestId" text, signer text,
        "signersTurn" int8, place int4)
    ), keys as (
      select "accountId" as key, turn from wanted where not exists (select from writes
        where idempotency_key = wanted."idempotencyKey")
      union all select signer, "signersTurn" from wanted where signer is not null
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
      where "accountId" in (select account_id from turn) and (signer is null or signer in (select account_id from turn))
    ), lane as (
      update lanes set next_nonce = next_nonce + 1
      where payer = ${payer} and not draining and exists (select from ready)
      returning next_nonce - 1 as nonce
    ), transaction as (
      insert into transactions (id, payer, nonce, purpose, state, gas_limit, instance_id, request_id)
      select ${id}, ${payer}::int4, nonce, 'writes', 'reserved', ${gasLimit.toString()}::int8, ${instanceId},
        ${requestId}
      from lane returning *
    ), carried as (
      insert into writes (id, account_id, kind, state, transaction_id, place, calldata, tag, signer, idempotency_key,
        billed, request_id)
      select ready.id, "accountId", ready.kind, 'carried', transaction.id, row_number() over (order by place) - 1,
        calldata, tag, signer, "idempotencyKey", billed, "requestId"
      from ready cross join transaction
      returning *
    )
    select carried.*, transaction.nonce, transaction.created_at as begun_at from carried cross join transaction
    order by place`.execute(trx);
  const [first] = rows;
  if (first === undefined) return undefined;
  const transaction = { ...NEW, id, payer, nonce: first.nonce, gas_limit: Number(gasLimit), instance_id: instanceId };
  return {
    transaction: { ...transaction, request_id: requestId, created_at: first.begun_at, updated_at: first.begun_at },
    writes: rows.map(({ nonce: _nonce, begun_at: _begunAt, ...write }) => write),
  };
}

const NEW: Omit<
  TransactionRow,
  "id" | "payer" | "nonce" | "gas_limit" | "instance_id" | "request_id" | "created_at" | "updated_at"
> = {
  purpose: "writes",
  state: "reserved",
  to_payer: null,
  amount_wei: null,
  abandon: false,
  hash: null,
  block_number: null,
  block_hash: null,
};
