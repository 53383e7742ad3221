/**
 * Takes transactions from their nonce to their fate. One loop per transaction with idempotent steps: all state is in
 * the store, so any instance can take the next step. All attempts share one nonce, so at most one can be mined.
 */
import { KeywrightError } from "../../../protocol/errors";
import { RpcError, type RpcFailure } from "../../../protocol/rpc/errors";
import { failureOf } from "../abi/failures";
import { receiptOf, type Receipt } from "../abi/receipts";
import type { Fees } from "../payers/fees";
import { UseOfNonce } from "../payers/useOfNonce";
import { abandonedOutcomes, outcomesOf } from "./outcomes";
import type { Parts } from "./parts";
import type { AttemptRow, CarriedWrite, Carrier, TransactionRow } from "./rows";
import { sign } from "./signing";
import { isOpen } from "./states";
import { LostTransaction, TRANSFER_GAS } from "./transactions";

/** Per-loop state; losing it costs only time. */
class Monitored implements Carrier {
  /** Time of the last broadcast of the newest attempt; undefined when it is to be sent. */
  sentAt: number | undefined;
  lookedAt = -Infinity;
  /** Looks since a node accepted or knew the transaction. */
  misses = 0;
  refusals = 0;
  /** Whether all endpoints get what is sent: the one that took it may have lost it or kept it to itself. */
  everywhere = false;
  /** When all endpoints were asked for its receipt: one that hangs takes long. */
  askedAllAt = -Infinity;

  constructor(
    public transaction: TransactionRow,
    public writes: readonly CarriedWrite[],
    public attempts: readonly AttemptRow[],
    /** By a transaction that is not ours. */
    readonly use: UseOfNonce,
  ) {}

  get isToBeNoop(): boolean {
    return this.transaction.purpose === "noop" || this.transaction.abandon;
  }

  /** Its first attempt precedes all that needs one. No other has higher fees. */
  get last(): AttemptRow {
    return this.attempts.at(-1) as AttemptRow;
  }

  /** Of the kind that is to be mined, if there is one: what was executed is, also where a no-op was to replace it. */
  get newest(): AttemptRow {
    return this.attempts.findLast(({ is_noop }) => is_noop === this.isToBeNoop) ?? this.last;
  }

  accepted(): void {
    this.misses = 0;
    this.refusals = 0;
  }
}

const MISSES_BEFORE_SENDING_AGAIN = 3;
const REFUSALS_BEFORE_GIVING_UP = 3;

export class TransactionMonitor {
  readonly #watched = new Map<string, Promise<void>>();
  #stopping = false;
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get watchedIds(): readonly string[] {
    return [...this.#watched.keys()];
  }

  /** Watches the transaction, unless it is watched already. */
  watch(transaction: TransactionRow, writes?: readonly CarriedWrite[]): void {
    const { id } = transaction;
    if (this.#stopping || this.#watched.has(id)) return;
    const loop = this.#loop(transaction, writes).finally(() => this.#watched.delete(id));
    this.#watched.set(id, loop);
  }

  /** Stops between two steps and releases all transactions. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ids = this.watchedIds;
    await Promise.all(this.#watched.values());
    await this.#parts.transactions.release(ids);
  }

  async #loop(transaction: TransactionRow, given: readonly CarriedWrite[] | undefined): Promise<void> {
    const { rpc, log, head, transactions, tuning } = this.#parts;
    const { id, state } = transaction;
    try {
      const writes = given ?? (await transactions.writes(id));
      const attempts = state === "reserved" ? [] : await transactions.attempts(id);
      const item = new Monitored(transaction, writes, attempts, new UseOfNonce(rpc));
      while (!this.#stopping && isOpen(item.transaction)) {
        await this.#step(item).catch((error: unknown) => {
          // Chain, executor or database are unavailable for the moment.
          if (!(error instanceof RpcError || (error instanceof KeywrightError && error.retryable))) throw error;
          log.warn({ err: error, transactionId: id }, "a step of a transaction failed; it is tried again");
        });
        if (isOpen(item.transaction)) await head.next(Math.min(tuning.slowestPollMs, tuning.lookEveryMs));
      }
    } catch (error) {
      // The store failed, or another instance took over: the sweep has the transaction watched again.
      if (!(error instanceof LostTransaction))
        log.error({ err: error, transactionId: id }, "a transaction was left; the sweep takes it up again");
      await transactions.release([id]).catch(() => undefined);
    }
  }

  async #step(item: Monitored): Promise<void> {
    if (item.attempts.length === 0 && !(await this.#firstAttempt(item))) return;
    if (item.sentAt === undefined) {
      // Unless this is the first time, it may be pending or already mined.
      if ((item.lookedAt > 0 || item.transaction.state !== "signed") && (await this.#endByReceipt(item))) return;
      if (item.isToBeNoop && !item.newest.is_noop) await this.#replace(item, true);
      await this.#broadcast(item);
    }
    if (await this.#endByReceipt(item)) return;
    await this.#notePending(item);
    if (performance.now() - item.lookedAt >= this.#parts.tuning.lookEveryMs) await this.#checkPending(item);
  }

  /** Signs for the first time. Throws when it may be retried; false when it is abandoned (no-ops are tried again). */
  async #firstAttempt(item: Monitored): Promise<boolean> {
    const { fees, transactions, log, tuning } = this.#parts;
    const { id, purpose, created_at } = item.transaction;
    try {
      await this.#attempt(item, item.isToBeNoop, await fees.now());
      return true;
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.retryable && Date.now() - created_at.getTime() < tuning.unsignedForAtMostMs) throw error;
      // A no-op can only end by being mined.
      if (purpose === "noop") log.error({ err: error, transactionId: id }, "the executor declines to use a nonce");
      else this.#ended(item, await transactions.abandonUnsigned(item, failureOf(error)));
      return false;
    }
  }

  /** Takes over the transaction as stored, and publishes its fate. */
  #ended(item: Monitored, carrier: Carrier): void {
    item.transaction = carrier.transaction;
    item.writes = carrier.writes;
    if (!isOpen(carrier.transaction)) this.#parts.outcomes.emit("transaction", carrier);
  }

  async #attempt(item: Monitored, isNoop: boolean, fees: Fees): Promise<void> {
    const signed = await sign(this.#parts.executor, item, isNoop, fees);
    const attempt = await this.#parts.transactions.addAttempt(item.transaction.id, signed);
    item.attempts = [...item.attempts.filter(({ hash }) => hash !== attempt.hash), attempt];
    item.sentAt = undefined;
    if (item.transaction.state === "reserved") item.transaction = { ...item.transaction, state: "signed" };
  }

  async #broadcast(item: Monitored): Promise<void> {
    item.sentAt = performance.now();
    // It may be mined or pending, the pool full, or the node wrong: a look comes before it is sent again.
    item.misses = MISSES_BEFORE_SENDING_AGAIN - 1;
    // What is abandoned is not sent again, also while nothing can take its place.
    if (item.isToBeNoop && !item.newest.is_noop) return;
    const failure = await this.#parts.rpc.broadcast(item.newest.raw, { everywhere: item.everywhere });
    if (failure !== undefined) return this.#refused(item, failure);
    item.lookedAt = item.sentAt;
    item.accepted();
  }

  /** Stored only for a transaction that waits for a block: one mined at once goes directly from signed to mined. */
  async #notePending(item: Monitored): Promise<void> {
    if (item.misses > 0 || item.transaction.state !== "signed") return;
    item.transaction = { ...item.transaction, state: "pending" };
    await this.#parts.transactions.notePending(item.transaction.id);
  }

  async #refused(item: Monitored, failure: RpcFailure): Promise<void> {
    const { id, payer, nonce, purpose } = item.transaction;
    this.#parts.log.info({ transactionId: id, failure, payer, nonce }, "no node took a transaction");
    if (failure === "underpriced") return this.#replace(item, item.newest.is_noop);
    // An earlier nonce is still pending: send again with the next head.
    if (failure === "nonce_too_high") item.sentAt = undefined;
    // The admin payer's later nonces wait for a top-up; a smaller one may do, and is begun then.
    const isTooMuch = failure === "insufficient_funds" && purpose === "top_up";
    if (failure === "insufficient_funds" && !isTooMuch) await this.#wantFunds(item);
    if (failure !== "refused" && failure !== "needs_too_much_gas" && !isTooMuch) return;
    item.sentAt = undefined;
    item.refusals += 1;
    if (item.refusals >= REFUSALS_BEFORE_GIVING_UP) await this.#abandon(item);
  }

  /** Its payer's balance may be above the minimum, and paid for several when each was begun. */
  async #wantFunds({ newest, transaction: { gas_limit: gas } }: Monitored): Promise<void> {
    await this.#parts.lanes.want((newest.is_noop ? TRANSFER_GAS : BigInt(gas)) * BigInt(newest.max_fee));
  }

  /** From now on only a no-op is sent. */
  async #abandon(item: Monitored): Promise<void> {
    if (item.isToBeNoop) return;
    await this.#parts.transactions.abandon(item.transaction.id);
    item.transaction = { ...item.transaction, abandon: true };
    item.sentAt = undefined;
  }

  /** The attempt that has a receipt, of one endpoint or of any, determines the outcome; false if none has one. */
  async #endByReceipt(item: Monitored, ofAny = false): Promise<boolean> {
    const { rpc, contractAddress, transactions, head, log, tuning } = this.#parts;
    const highest = head.number + tuning.finalityDepth;
    for (const attempt of item.attempts) {
      const isReceipt = (answer: unknown): boolean => receiptOf(attempt.hash, highest, answer) !== undefined;
      const asked = ["eth_getTransactionReceipt", [attempt.hash]] as const;
      const answer = ofAny ? await rpc.firstAccepted<Receipt>(...asked, isReceipt) : await rpc.call(...asked);
      const receipt = receiptOf(attempt.hash, highest, answer);
      if (receipt === undefined) continue;
      // The follower may have given writes back to one that a rewind had left without them.
      if (item.isToBeNoop) item.writes = await transactions.writes(item.transaction.id);
      const outcomes = await outcomesOf(rpc, contractAddress, item, attempt, receipt);
      const facts = { transactionId: item.transaction.id, hash: receipt.transactionHash, writes: item.writes.length };
      if (outcomes.size < item.writes.length)
        log.warn(facts, "a shared transaction failed as a whole; its writes will be sent alone");
      this.#ended(item, await transactions.end(item.transaction.id, receipt, outcomes));
      return true;
    }
    return false;
  }

  /** No receipt for a while: checks whether it is to be abandoned, is known, stuck or dropped, or lost its nonce. */
  async #checkPending(item: Monitored): Promise<void> {
    const { rpc, transactions } = this.#parts;
    const { id, instance_id: monitoredBy } = item.transaction;
    item.lookedAt = performance.now();
    const now = await transactions.carrier(id);
    if (isOpen(now.transaction) && now.transaction.instance_id !== monitoredBy) throw new LostTransaction();
    this.#ended(item, now);
    if (!isOpen(item.transaction)) return;
    if (item.isToBeNoop && !item.newest.is_noop) item.sentAt = undefined;
    const asked = item.attempts.map(({ hash }) => rpc.call<unknown>("eth_getTransactionByHash", [hash]));
    if ((await Promise.all(asked)).some((transaction) => transaction !== null)) {
      item.accepted();
      return this.#ifStuck(item);
    }
    item.misses += 1;
    if (item.misses >= MISSES_BEFORE_SENDING_AGAIN) Object.assign(item, { sentAt: undefined, everywhere: true });
    await this.#endIfProven(item);
  }

  /**
   * Known, next in its lane and old: raise the fees. Fees do not help a transaction queued behind another. The endpoint
   * that took it may stand still or have kept it to itself: the others are asked first, and given it.
   */
  async #ifStuck(item: Monitored): Promise<void> {
    const { rpc, transactions, tuning } = this.#parts;
    const { payer, nonce } = item.transaction;
    if (item.sentAt === undefined || performance.now() - item.sentAt < tuning.stuckAfterMs) return;
    if (performance.now() - item.askedAllAt >= tuning.stuckAfterMs) {
      item.askedAllAt = performance.now();
      if (await this.#endByReceipt(item, true)) return;
    }
    if (!item.everywhere) await this.#sendEverywhere(item);
    const sender = await transactions.payerAddress(payer);
    const next = await rpc.call<string>("eth_getTransactionCount", [sender, "latest"]);
    if (Number(next) !== nonce) return;
    // A node that knows it does not say that its payer cannot pay for it.
    if (item.transaction.purpose !== "top_up") await this.#wantFunds(item);
    await this.#replace(item, item.newest.is_noop);
  }

  async #sendEverywhere(item: Monitored): Promise<void> {
    item.everywhere = true;
    if (!item.isToBeNoop || item.newest.is_noop) await this.#parts.rpc.broadcast(item.newest.raw, { everywhere: true });
  }

  /**
   * With fees that nodes accept; higher ones where a no-op takes the place of the content. Without them, here or by the
   * executor's rules, pending attempts stay as they are. What it declines for good is abandoned.
   */
  async #replace(item: Monitored, isNoop: boolean): Promise<void> {
    const { max_fee, priority_fee, is_noop } = item.last;
    const before = { maxFeePerGas: BigInt(max_fee), maxPriorityFeePerGas: BigInt(priority_fee) };
    const fees = await this.#parts.fees.toReplace(before, isNoop && !is_noop);
    if (fees === undefined) return;
    try {
      await this.#attempt(item, isNoop, fees);
    } catch (error) {
      const isOfFees = error instanceof KeywrightError && error.code === "no_payer_available";
      if (!(error instanceof KeywrightError) || (error.retryable && !isOfFees)) throw error;
      const { id } = item.transaction;
      this.#parts.log.error({ err: error, transactionId: id }, "the executor declines a replacement");
      if (!isNoop && !isOfFees) await this.#abandon(item);
    }
  }

  /**
   * The nonce is used: by an own attempt, whose receipt any endpoint may have; or by a foreign transaction, once that
   * is final. Until either is seen the fate is unknown, however long that takes.
   */
  async #endIfProven(item: Monitored): Promise<void> {
    const { transactions, tuning, head, log } = this.#parts;
    const { id, payer, nonce, abandon } = item.transaction;
    if (await this.#endByReceipt(item, true)) return;
    const use = await item.use.find(await transactions.payerAddress(payer), nonce ?? 0);
    if (use === undefined || item.attempts.some(({ hash }) => hash === use.hash)) return;
    if (head.number - use.block.number < tuning.finalityDepth) return;
    const facts = { transactionId: id, hash: use.hash };
    log.error(facts, "a transaction that is not this service's used a payer's nonce; the writes are sent again");
    const outcomes = abandonedOutcomes(abandon ? item.writes : []);
    this.#ended(item, await transactions.end(id, { displacedIn: use.block.number }, outcomes));
  }
}

export interface SendingParts extends Parts {
  readonly monitor: TransactionMonitor;
}
