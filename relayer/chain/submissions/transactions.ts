/**
 * Transactions and writes in the store: the only file that changes their states. Every change is one statement or
 * transaction conditional on the state it starts from, so that two relayers, even one presumed dead, can never both
 * make it.
 */
import { sql, type RawBuilder } from "kysely";
import type { AccountId } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import { leaseExpired } from "../../store/instance";
import type { SubmissionFailure, SubmissionHooks, SubmissionId } from "../types";
import type { Receipt } from "../abi/receipts";
import { newWrites, waitingWrite, type NewWrite, type Steps } from "./begin";
import {
  carriedWrites,
  newSubmissionId,
  type AttemptRow,
  type CarriedWrite,
  type Carrier,
  type Outcome,
  type TransactionRow,
  type WriteRow,
} from "./rows";
import { TRANSACTION_IS_OPEN, WRITE_IS_OPEN, WRITE_WAITS, type SubmissionState } from "./states";

/** Another instance monitors the transaction now; this one must not continue. */
export class LostTransaction extends Error {
  override readonly name = "LostTransaction";
}

/** An own attempt is in a block, or a transaction that is not ours has its nonce in a final one. */
type Fate = Pick<Receipt, "transactionHash" | "blockNumber" | "blockHash"> | { readonly displacedIn: number };

interface NewTransaction extends Pick<TransactionRow, "payer" | "request_id"> {
  readonly gasLimit: bigint;
  readonly topUp?: { readonly toPayer: number; readonly amountWei: bigint };
}

const AT_A_TIME = 200;
export const TRANSFER_GAS = 21_000n;

export class Transactions {
  readonly #db: Db;
  readonly #instanceId: string;
  readonly #hooks: SubmissionHooks;

  constructor(db: Db, instanceId: string, hooks: SubmissionHooks) {
    this.#db = db;
    this.#instanceId = instanceId;
    this.#hooks = hooks;
  }

  /**
   * Takes the lane's next nonce and stores the transaction and its writes. Writes missing from the result missed their
   * turn, or their idempotency key was used: simulate them again. Undefined when none is left, or the lane is draining.
   */
  async begin(payer: number, gasLimit: bigint, writes: readonly NewWrite[]): Promise<Carrier | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      const transaction = { payer, gasLimit, request_id: writes[0]?.request_id ?? null };
      const begun = await this.#begin(trx, transaction, newWrites(writes));
      const billed = begun?.writes.filter((write) => write.billed).map(({ id }) => id as SubmissionId) ?? [];
      if (billed.length > 0) await this.#hooks.onBegin(billed, trx);
      return begun;
    });
  }

  /** Gives a waiting write a transaction of its own; undefined if another instance did, or the lane is draining. */
  carryAlone({ id, request_id }: WriteRow, payer: number, gasLimit: bigint): Promise<Carrier | undefined> {
    return this.#begin(this.#db, { payer, gasLimit, request_id }, waitingWrite(id));
  }

  /** Begins a gas transfer to a payer on the admin payer's lane; undefined while another top-up of it is pending. */
  async beginTopUp(toPayer: number, amountWei: bigint): Promise<TransactionRow | undefined> {
    const begun = { payer: 0, gasLimit: TRANSFER_GAS, topUp: { toPayer, amountWei }, request_id: null };
    const condition = sql<boolean>`not exists (select from transactions
      where to_payer = ${toPayer} and ${TRANSACTION_IS_OPEN})`;
    return (await this.#begin(this.#db, begun, { condition }))?.transaction;
  }

  /** Takes the lane's next nonce and inserts a transaction with it; undefined where the condition does not hold. */
  async #begin(
    db: Db,
    { payer, request_id, gasLimit, topUp }: NewTransaction,
    { before = sql``, condition, after = sql`` }: Steps,
  ): Promise<Carrier | undefined> {
    const { rows } = await sql<TransactionRow>`
      with ${before} lane as (
        update lanes set next_nonce = next_nonce + 1 where payer = ${payer} and ${condition}
        returning next_nonce - 1 as nonce
      ), transaction as (
        insert into transactions
          (id, payer, nonce, purpose, state, gas_limit, to_payer, amount_wei, instance_id, request_id)
        select ${newSubmissionId()}, ${payer}::int4, nonce, ${topUp === undefined ? "writes" : "top_up"}, 'reserved',
          ${String(gasLimit)}::int8, ${topUp?.toPayer ?? null}::int4, ${topUp?.amountWei.toString() ?? null}::numeric,
          ${this.#instanceId}, ${request_id}
        from lane returning *
      ) ${after} select * from transaction`.execute(db);
    const [transaction] = rows;
    return transaction && { transaction, writes: await this.writes(transaction.id, db) };
  }

  /** A transaction of the service itself that only uses a nonce; undefined if the nonce has one. */
  beginNoop(payer: number, nonce: number): Promise<TransactionRow | undefined> {
    const begun = { payer, nonce, gas_limit: Number(TRANSFER_GAS), instance_id: this.#instanceId };
    return this.#db
      .insertInto("transactions")
      .values({ id: newSubmissionId(), purpose: "noop", state: "reserved", ...begun })
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .executeTakeFirst();
  }

  /** Stores signed bytes before they are sent. Throws LostTransaction. */
  async addAttempt(id: string, attempt: Omit<AttemptRow, "created_at" | "transaction_id">): Promise<AttemptRow> {
    const { rows } = await sql<AttemptRow>`
      with held as (
        update transactions set state = case when state = 'reserved' then 'signed' else state end, updated_at = now()
        where id = ${id} and instance_id = ${this.#instanceId} and ${TRANSACTION_IS_OPEN}
        returning id
      )
      insert into attempts (hash, transaction_id, is_noop, raw, max_fee, priority_fee)
      select ${attempt.hash}, id, ${attempt.is_noop}::boolean, ${attempt.raw}, ${attempt.max_fee}::numeric,
        ${attempt.priority_fee}::numeric from held
      on conflict (hash) do update set raw = excluded.raw
      returning *`.execute(this.#db);
    if (rows[0] === undefined) throw new LostTransaction();
    return rows[0];
  }

  /** A node accepted or already knows the transaction. */
  async notePending(id: string): Promise<void> {
    await sql`update transactions set state = 'pending', updated_at = now()
      where id = ${id} and state = 'signed'`.execute(this.#db);
  }

  /**
   * Stores a transaction's fate and its writes' outcomes, frees the accounts' turns and notifies credits, in one
   * transaction, unless it has been reopened or another instance monitors it: what is stored now is returned. Writes
   * without an outcome wait for another transaction. Credits are notified once per write, not again after a reorg.
   */
  async end(id: string, fate: Fate, outcomes: ReadonlyMap<string, Outcome>): Promise<Carrier> {
    const done = [...outcomes].flatMap(([write, { state }]) => (state === "done" ? [write] : []));
    // After a reorg what was answered as done is to be done again, also where it was cancelled before. What has left
    // the transaction comes back to it with the events of its execution (`reopenExecuted`).
    const isExecuted = sql<boolean>`exists (select from writes
      where transaction_id = ${id} and writes.state = 'carried' and writes.id = any(${done}::text[]))`;
    const isSo =
      "displacedIn" in fate
        ? sql`state = 'displaced', displaced_in = ${fate.displacedIn}::int8`
        : sql`state = 'mined', hash = ${fate.transactionHash}, block_number = ${Number(fate.blockNumber)}::int8,
            block_hash = ${fate.blockHash}, abandon = abandon and not ${isExecuted}`;
    return this.#db.transaction().execute(async (trx) => {
      const { rows } = await sql<EndedWrite>`
        with transaction as (
          update transactions set ${isSo}, instance_id = null, updated_at = now()
          where id = ${id} and instance_id = ${this.#instanceId} and ${TRANSACTION_IS_OPEN} returning id, block_number
        ), ended as (${endOf(sql`(select id from transaction)`, outcomes)}),
        -- Of one account: the highest of all counts.
        seen as (
          update account_turns set last_block = greatest(last_block, block_number) from transaction
          where account_id = (select min(account_id) from ended) and block_number is not null
        )
        select * from ended`.execute(trx);
      await this.#settle(trx, rows);
      return this.carrier(id, trx);
    });
  }

  /**
   * Abandons a transaction that was never signed: its writes fail. Its nonce is returned if it is the lane's highest,
   * otherwise it becomes a no-op. Throws LostTransaction.
   */
  async abandonUnsigned({ transaction: { id }, writes }: Carrier, error: SubmissionFailure): Promise<Carrier> {
    return this.#db.transaction().execute(async (trx) => {
      const { rows } = await sql`
        with held as (
          select id, payer, nonce from transactions
          where id = ${id} and state = 'reserved' and instance_id = ${this.#instanceId} for update
        ), returned as (
          update lanes set next_nonce = next_nonce - 1 from held
          where lanes.payer = held.payer and next_nonce = held.nonce + 1 returning lanes.payer
        )
        update transactions set updated_at = now(), purpose = 'noop',
          state = case when exists (select from returned) then 'dropped' else state end,
          nonce = case when exists (select from returned) then null else transactions.nonce end
        from held where transactions.id = held.id returning transactions.id`.execute(trx);
      if (rows.length === 0) throw new LostTransaction();
      await this.#fail(trx, writes, error);
      return this.carrier(id, trx);
    });
  }

  /** From now on only a no-op is signed for it. */
  abandon(id: string): Promise<boolean> {
    return cancelSubmission(this.#db, id);
  }

  /**
   * Writes that their transaction did not carry out, the oldest and those answered as failed: they wait for another one
   * once its failure is final, since a reorg could let it succeed.
   */
  waiting(): Promise<readonly CarriedWrite[]> {
    return this.#find(sql<boolean>`writes.id in (select writes.id from writes
      join transactions on transactions.id = transaction_id
      where ${WRITE_WAITS} order by writes.before -> 'error' is null, writes.created_at limit ${sql.lit(AT_A_TIME)})`);
  }

  /** Stores the failure of a waiting write that would fail again. */
  async failWaiting(write: WriteRow, error: SubmissionFailure): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      const { rows } = await sql`update transactions set purpose = 'noop', abandon = true
        where id = ${write.transaction_id} and state in ('confirmed', 'displaced') returning id`.execute(trx);
      if (rows.length > 0) await this.#fail(trx, [write], error);
    });
  }

  /**
   * Takes over open transactions that are not monitored or whose monitor's lease expired, and this instance's own that
   * it does not monitor (because the store failed between two steps).
   */
  async takeOver(monitored: readonly string[]): Promise<TransactionRow[]> {
    const { rows } = await sql<TransactionRow>`
      update transactions set instance_id = ${this.#instanceId} where id in (
        select id from transactions
        where ${TRANSACTION_IS_OPEN} and (instance_id is null or ${leaseExpired("transactions.instance_id")}
          or (instance_id = ${this.#instanceId} and not id = any(${[...monitored]}::text[])))
        order by payer, nonce limit ${sql.lit(AT_A_TIME)} for update skip locked)
      returning *`.execute(this.#db);
    return rows;
  }

  /** Releases transactions, so that any instance may take them over at once. */
  async release(ids: readonly string[]): Promise<void> {
    await sql`update transactions set instance_id = null
      where id = any(${[...ids]}::text[]) and instance_id = ${this.#instanceId}`.execute(this.#db);
  }

  async payerAddress(payer: number): Promise<string> {
    const lanes = this.#db.selectFrom("lanes").select("address").where("payer", "=", payer);
    return (await lanes.executeTakeFirstOrThrow()).address;
  }

  /** Throws LostTransaction when there is none. */
  async carrier(id: string, db: Db | Trx = this.#db): Promise<Carrier> {
    const transaction = await db.selectFrom("transactions").selectAll().where("id", "=", id).executeTakeFirst();
    if (transaction === undefined) throw new LostTransaction();
    return { transaction, writes: await this.writes(id, db) };
  }

  attempts(id: string): Promise<AttemptRow[]> {
    const attempts = this.#db.selectFrom("attempts").selectAll().where("transaction_id", "=", id);
    return attempts.orderBy("created_at").execute();
  }

  /** The writes that a transaction carries or carried, in order; one that others have left carries none again. */
  writes(id: string, db?: Db): Promise<readonly CarriedWrite[]> {
    return this.#find(
      sql<boolean>`transaction_id = ${id} and not (writes.state = 'waiting'
      or (purpose = 'noop' and ${WRITE_IS_OPEN}))`,
      db,
    );
  }

  async write(id: string): Promise<CarriedWrite | undefined> {
    return (await this.#find(sql<boolean>`writes.id = ${id}`))[0];
  }

  async byIdempotencyKey(key: string | undefined): Promise<CarriedWrite | undefined> {
    return key === undefined ? undefined : (await this.#find(sql<boolean>`writes.idempotency_key = ${key}`))[0];
  }

  ended(ids: readonly string[]): Promise<readonly CarriedWrite[]> {
    return this.#find(sql<boolean>`writes.id = any(${[...ids]}::text[]) and not ${WRITE_IS_OPEN}`);
  }

  #find(which: RawBuilder<boolean>, db = this.#db): Promise<readonly CarriedWrite[]> {
    return carriedWrites(db).where(which).orderBy("writes.created_at").orderBy("place").orderBy("writes.id").execute();
  }

  /** How many writes are in each open state, as callers see them. */
  async openByState(): Promise<Readonly<Partial<Record<SubmissionState, number>>>> {
    const { rows } = await sql<{ state: SubmissionState; count: number }>`
      select count(*)::int4 as count,
        case transactions.state when 'signed' then 'signed' when 'pending' then 'sent' else 'reserved' end as state
      from writes join transactions on transactions.id = writes.transaction_id
      where ${WRITE_IS_OPEN} group by 2`.execute(this.#db);
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  /** Not charged, even where it was answered as failed and charged before a reorg. */
  async #fail(trx: Trx, writes: readonly WriteRow[], { facts, ...why }: SubmissionFailure): Promise<void> {
    const { charged: _, ...others } = facts;
    const outcome: Outcome = { state: "failed", error: { ...why, facts: others }, charged: false };
    const outcomes = new Map(writes.map(({ id }) => [id, outcome]));
    const { rows } = await endOf(sql`${writes[0]?.transaction_id ?? null}`, outcomes).execute(trx);
    await this.#settle(trx, rows);
  }

  /** Notifies credits of first outcomes, and of writes that were charged before a reorg and are not executed now. */
  async #settle(trx: Trx, ended: readonly EndedWrite[]): Promise<void> {
    const outcomes = ended
      .filter(({ billed, before, is_undone }) => billed && (before === null || is_undone))
      .map(({ id, account_id, kind, charged, is_undone: isUndone }) => {
        const outcome = { submissionId: id as SubmissionId, accountId: account_id as AccountId, kind, charged };
        return isUndone ? { ...outcome, isUndone } : outcome;
      });
    if (outcomes.length > 0) await this.#hooks.onOutcome(outcomes, trx);
  }
}

/**
 * Abandons a transaction, given by its id or that of a write that it carries: its monitor uses the nonce for a no-op.
 * False when there is nothing to abandon.
 */
export async function cancelSubmission(db: Db, id: string): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`update transactions set abandon = true, updated_at = now()
    where id = coalesce((select transaction_id from writes where id = ${id} and state = 'carried'), ${id})
      and purpose <> 'noop' and ${TRANSACTION_IS_OPEN}`.execute(db);
  return numAffectedRows > 0n;
}

interface EndedWrite extends WriteRow {
  /** It was charged before a reorg, and is not now. */
  readonly is_undone: boolean;
}

/**
 * Gives those writes of a transaction that are still open their outcomes, and returns them. Charged are those that have
 * paid: credit was held for them, and the first outcome, before any reorg, has settled it.
 */
function endOf(transactionId: RawBuilder<unknown>, outcomes: ReadonlyMap<string, Outcome>): RawBuilder<EndedWrite> {
  const ends = [...outcomes].map(([id, { state, result = null, error = null, charged }]) => {
    return { id, state, result, error, charged };
  });
  return sql`
    update writes set state = ends.state, result = ends.result, error = ends.error, updated_at = now(),
      charged = ends.charged and was.billed and (was.before is null or was.charged)
    from jsonb_to_recordset(${JSON.stringify(ends)}::jsonb)
      as ends (id text, state text, result jsonb, error jsonb, charged boolean) join writes was on was.id = ends.id
    where writes.id = ends.id and ${WRITE_IS_OPEN} and writes.transaction_id = ${transactionId}
    returning writes.*, was.charged and not writes.charged as is_undone`;
}
