/** What the statement that begins a transaction does besides. */
import { sql, type RawBuilder } from "kysely";
import type { WriteRow } from "./rows";
import { WRITE_IS_OPEN, WRITE_WAITS } from "./states";

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

/** Parts of one statement: a transaction is begun where `condition` holds after what is done before it. */
export interface Steps {
  readonly before?: RawBuilder<unknown>;
  readonly condition: RawBuilder<boolean>;
  readonly after?: RawBuilder<unknown>;
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

/**
 * Carries a write that waits for a transaction, unless another instance was first. The one that it leaves becomes a
 * no-op if it is reopened, and is locked before the write, as a rewind locks them.
 */
export const waitingWrite = (id: string): Steps => ({
  before: sql`waiting as (
      select writes.id, transaction_id from transactions join writes on transactions.id = transaction_id
      where writes.id = ${id} and ${WRITE_WAITS} for update
    ),`,
  condition: sql`not draining and exists (select from waiting)`,
  after: sql`, carried as (
      update writes set state = 'carried', transaction_id = transaction.id, place = 0, updated_at = now()
      from transaction, waiting where writes.id = waiting.id
    ), emptied as (
      update transactions set purpose = 'noop', abandon = true from transaction, waiting
      where transactions.id = waiting.transaction_id
    )`,
});
