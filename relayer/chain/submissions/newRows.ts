/**
 * The statement that begins a submission: takes its account's turn and its lane's nonce and inserts its row. Turns are
 * locked in the order of their keys, here and wherever several are changed, so that two such statements cannot
 * deadlock.
 */
import { sql } from "kysely";
import type { AccountId, Address } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import type { SubmissionId } from "../types";
import { BATCH, newSubmissionId, type SubmissionRow, type Unit } from "./rows";
import { IS_OPEN } from "./states";

export interface NewSubmission {
  readonly id: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  readonly payer: number;
  /** The turn at which the write was simulated. */
  readonly turn: number;
  readonly calldata: string;
  /** Null for a forward request, which is authorized by its signature. */
  readonly tag: string | null;
  /** Of a forward request: its signer, and the turn at which its nonce was read. */
  readonly signer?: { readonly address: Address; readonly turn: number };
  readonly gasLimit: bigint;
  readonly idempotencyKey: string | undefined;
  readonly billed: boolean;
  readonly requestId: string | undefined;
}

/** Writes, or forward requests, that share a transaction. */
export interface NewBatch {
  readonly payer: number;
  readonly gasLimit: bigint;
  readonly writes: readonly Omit<NewSubmission, "payer" | "gasLimit">[];
}

/** Undefined when no write is left, or the lane is draining. */
export async function takeBatchNonce(
  trx: Db | Trx,
  instanceId: string,
  { payer, gasLimit, writes }: NewBatch,
): Promise<Unit | undefined> {
  const id = newSubmissionId();
  const wanted = writes.map(({ idempotencyKey = null, requestId = null, signer, ...write }, place) => ({
    ...write,
    idempotencyKey,
    requestId,
    signer: signer?.address ?? null,
    signersTurn: signer?.turn ?? null,
    place,
  }));
  const { rows } = await sql<SubmissionRow>`
    with wanted as (
      select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as w (id text, "accountId" text, kind text,
        turn int8, calldata text, tag text,
        "idempotencyKey" text, billed boolean, "requestId" text, signer text, "signersTurn" int8, place int4)
    ), keys as (
      select "accountId" as key, turn from wanted where not exists (select from submissions
        where idempotency_key = wanted."idempotencyKey")
      union all select signer, "signersTurn" from wanted where signer is not null
    ), locked as (
      select keys.key, keys.turn from account_turns join keys on account_id = keys.key order by account_id
        for update of account_turns
    ), turn as (
      update account_turns set turn = account_turns.turn + 1, payer = ${payer} from locked
      where account_id = locked.key and account_turns.turn = locked.turn
        and not exists (select from submissions where account_id = locked.key and ${IS_OPEN})
        and not exists (select from submissions where signer = locked.key and ${IS_OPEN})
      returning account_id
    ), ready as (
      select wanted.* from wanted
      where "accountId" in (select account_id from turn) and (signer is null or signer in (select account_id from turn))
    ), lane as (
      update lanes set next_nonce = next_nonce + 1
      where payer = ${payer} and not draining and exists (select from ready)
      returning next_nonce - 1 as nonce
    ), batch as (
      insert into submissions (id, kind, state, payer, nonce, gas_limit, instance_id)
      select ${id}, 'batch', 'reserved', ${payer}::int4, nonce, ${gasLimit.toString()}::int8, ${instanceId} from lane
        returning *
    ), members as (
      insert into submissions (id, account_id, kind, state, payer, batch_id, place, calldata, tag, idempotency_key,
        billed, request_id, signer)
      select ready.id, "accountId", kind, 'reserved', ${payer}::int4, ${id}, place, calldata, tag, "idempotencyKey",
        billed, "requestId", signer
      from ready cross join lane
      returning *
    )
    select * from batch union all select * from members`.execute(trx);
  const [row] = rows.filter(({ kind }) => kind === BATCH);
  return row === undefined ? undefined : { row, members: rows.filter(({ batch_id }) => batch_id === id).sort(byPlace) };
}

/** Undefined when another write of the account or signer came first, or the lane is draining. */
export async function takeNonce(
  trx: Db | Trx,
  instanceId: string,
  submission: NewSubmission,
): Promise<SubmissionRow | undefined> {
  const {
    id,
    accountId,
    kind,
    payer,
    turn,
    calldata,
    tag,
    gasLimit,
    idempotencyKey = null,
    billed,
    requestId = null,
    signer,
  } = submission;
  const keys = [
    { key: accountId, turn },
    ...(signer === undefined ? [] : [{ key: signer.address, turn: signer.turn }]),
  ];
  const { rows } = await sql<SubmissionRow>`
    with keys as (
      select * from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as k (key text, turn int8)
    ), locked as (
      select keys.key, keys.turn from account_turns join keys on account_id = keys.key order by account_id
        for update of account_turns
    ), turn as (
      update account_turns set turn = account_turns.turn + 1, payer = ${payer} from locked
      where account_id = locked.key and account_turns.turn = locked.turn
        and not exists (select from submissions where account_id = locked.key and ${IS_OPEN})
        and not exists (select from submissions where signer = locked.key and ${IS_OPEN})
      returning 1
    ), lane as (
      update lanes set next_nonce = next_nonce + 1
      where payer = ${payer} and not draining and (select count(*) from turn) = ${keys.length}::int4
      returning next_nonce - 1 as nonce
    )
    insert into submissions (id, account_id, kind, state, payer, nonce, calldata, tag, gas_limit, idempotency_key,
      billed, instance_id, request_id, signer)
    select ${id}, ${accountId}, ${kind}, 'reserved', ${payer}::int4, nonce, ${calldata}, ${tag},
      ${gasLimit.toString()}::int8, ${idempotencyKey}, ${billed}::boolean,
      ${instanceId}, ${requestId}, ${signer?.address ?? null}
    from lane returning *`.execute(trx);
  return rows[0];
}

const byPlace = (a: SubmissionRow, b: SubmissionRow): number => (a.place ?? 0) - (b.place ?? 0);
