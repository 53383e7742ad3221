/**
 * Takes transactions from their nonce to their fate. One loop per transaction with idempotent steps: all state is in
 * the store, so any instance can take the next step. All attempts share one nonce, so at most one can be mined.
 */
import type { Logger } from "pino";
import { KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle, Fees } from "../payers/fees";
import type { Head } from "../rpc/head";
import { abandonedOutcomes, fateOf, outcomesOf } from "./outcomes";
import {
  writesOf,
  type AttemptRow,
  type Carrier,
  type Fate,
  type Outcome,
  type TransactionRow,
  type WriteRow,
} from "./rows";
import type { OutcomeFeed } from "./outcomeWatch";
import { useOf } from "./evidence";
import type { Receipt } from "../abi/receipts";
import type { RpcClient } from "../rpc/client";
import { RpcError, type RpcFailure } from "../../../protocol/rpc/errors";
import type { ChainTuning } from "../settings";
import { sign } from "./signing";
import { isOpen } from "./states";
import { LostTransaction, type Transactions } from "./transactions";
import type { ExecutorPort } from "../types";

export interface TransactionMonitorOptions {
  readonly rpc: RpcClient;
  readonly transactions: Transactions;
  readonly executor: ExecutorPort;
  readonly head: Head;
  readonly fees: FeeOracle;
  readonly contractAddress: Address;
  readonly log: Logger;
  readonly tuning: ChainTuning;
  /** Receives every transaction whose fate this instance has seen. */
  readonly outcomes: OutcomeFeed;
}

/** Per-loop state; losing it costs only time. */
interface Monitored {
  transaction: TransactionRow;
  writes: readonly WriteRow[];
  attempts: AttemptRow[];
  /** Hash and time of the last broadcast attempt. */
  sent: { readonly hash: string; readonly at: number } | undefined;
  /** A node accepted or knows the transaction. */
  isKnownToNode: boolean;
  lookedAt: number;
  misses: number;
  refusals: number;
}

const MISSES_BEFORE_SENDING_AGAIN = 3;
const REFUSALS_BEFORE_GIVING_UP = 3;

export class TransactionMonitor {
  readonly #watched = new Map<string, Promise<void>>();
  #stopping = false;
  readonly #options: TransactionMonitorOptions;

  constructor(options: TransactionMonitorOptions) {
    this.#options = options;
  }

  get watchedIds(): readonly string[] {
    return [...this.#watched.keys()];
  }

  /** Watches the transaction, unless it is watched already. */
  watch(transaction: TransactionRow, writes?: readonly WriteRow[]): void {
    if (this.#stopping || this.#watched.has(transaction.id)) return;
    this.#watched.set(
      transaction.id,
      this.#loop(transaction, writes).finally(() => this.#watched.delete(transaction.id)),
    );
  }

  /** Stops between two steps and releases all transactions. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ids = this.watchedIds;
    await Promise.all(this.#watched.values());
    await this.#options.transactions.release(ids);
  }

  async #loop(transaction: TransactionRow, given: readonly WriteRow[] | undefined): Promise<void> {
    const { log, head, transactions, tuning } = this.#options;
    const { id, state, purpose } = transaction;
    try {
      const item: Monitored = {
        transaction,
        writes: given ?? (purpose === "writes" ? await transactions.writes(id) : []),
        attempts: state === "reserved" ? [] : await transactions.attempts(id),
        sent: undefined,
        isKnownToNode: false,
        lookedAt: 0,
        misses: 0,
        refusals: 0,
      };
      while (!this.#stopping && !(await this.#stepSafely(item)))
        await head.next(Math.min(tuning.slowestPollMs, tuning.lookEveryMs));
    } catch (error) {
      // The store failed, or another instance took over: the sweep has the transaction watched again.
      if (!(error instanceof LostTransaction))
        log.error({ err: error, transactionId: id }, "a transaction was left; the sweep takes it up again");
      await transactions.release([id]).catch(() => undefined);
    }
  }

  /** True when nothing is left to do. */
  async #stepSafely(item: Monitored): Promise<boolean> {
    try {
      return await this.#step(item);
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#options.log.warn(
        { err: error, transactionId: item.transaction.id },
        "a step of a transaction failed; it is tried again",
      );
      return false;
    }
  }

  async #step(item: Monitored): Promise<boolean> {
    if (item.attempts.length === 0 && !(await this.#firstAttempt(item))) return !isOpen(item.transaction);
    if (item.sent === undefined) {
      // Loaded from the store: it may be pending or already mined.
      if (item.transaction.state !== "signed" && (await this.#hasReceipt(item))) return true;
      await this.#replaceIfAbandoned(item);
      await this.#broadcast(item);
    }
    if (await this.#hasReceipt(item)) return true;
    await this.#notePending(item);
    if (Date.now() - item.lookedAt >= this.#options.tuning.lookEveryMs) await this.#checkPending(item);
    return !isOpen(item.transaction);
  }

  /** Signs for the first time. Throws when it may be retried; false when it is abandoned (no-ops are tried again). */
  async #firstAttempt(item: Monitored): Promise<boolean> {
    try {
      await this.#attempt(item, isToBeNoop(item), await this.#options.fees.now());
      return true;
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      const age = Date.now() - item.transaction.created_at.getTime();
      if (error.retryable && age < this.#options.tuning.unsignedForAtMostMs) throw error;
      await this.#abandonUnsigned(item, error);
      return false;
    }
  }

  async #abandonUnsigned(item: Monitored, { code, detail, facts }: KeywrightError): Promise<void> {
    const { transactions, outcomes, log } = this.#options;
    if (item.transaction.purpose === "noop") {
      // It can only end by being mined.
      log.error({ transactionId: item.transaction.id, code, detail }, "the executor declines to use a nonce");
      return;
    }
    const ended = await transactions.abandonUnsigned(item, { code, detail, facts: { ...facts } });
    for (const write of writesOf(ended)) outcomes.publishWrite(write);
    this.#ended(item, { transaction: ended.transaction, writes: [] });
  }

  async #end(item: Monitored, fate: Fate, outcomes: ReadonlyMap<string, Outcome>): Promise<boolean> {
    this.#ended(item, await this.#options.transactions.end(item, fate, outcomes));
    return !isOpen(item.transaction);
  }

  /** Takes over the transaction as stored, and publishes its fate. */
  #ended(item: Monitored, carrier: Carrier): void {
    item.transaction = carrier.transaction;
    item.writes = carrier.writes;
    if (!isOpen(carrier.transaction)) this.#options.outcomes.publish(carrier);
  }

  async #attempt(item: Monitored, isNoop: boolean, fees: Fees): Promise<void> {
    const signed = await sign(this.#options.executor, item, isNoop, fees);
    const attempt = await this.#options.transactions.addAttempt(item.transaction.id, signed);
    item.attempts = [...item.attempts.filter(({ hash }) => hash !== attempt.hash), attempt];
    item.sent = undefined;
    if (item.transaction.state === "reserved") item.transaction = { ...item.transaction, state: "signed" };
  }

  /** Broadcasts the newest attempt. */
  async #broadcast(item: Monitored): Promise<void> {
    const newest = item.attempts.at(-1);
    if (newest === undefined) return;
    const failure = await this.#options.rpc.broadcast(newest.raw);
    item.sent = { hash: newest.hash, at: Date.now() };
    item.lookedAt = Date.now();
    item.misses = 0;
    if (failure === undefined) this.#accepted(item);
    else await this.#refused(item, newest, failure);
  }

  #accepted(item: Monitored): void {
    item.refusals = 0;
    item.isKnownToNode = true;
  }

  /** Stored only for a transaction that waits for a block: one mined at once goes directly from signed to mined. */
  async #notePending(item: Monitored): Promise<void> {
    if (!item.isKnownToNode || item.transaction.state !== "signed") return;
    item.transaction = { ...item.transaction, state: "pending" };
    await this.#options.transactions.notePending(item.transaction.id);
  }

  async #refused(item: Monitored, attempt: AttemptRow, failure: RpcFailure): Promise<void> {
    const { log } = this.#options;
    log.info(
      { transactionId: item.transaction.id, failure, payer: item.transaction.payer, nonce: item.transaction.nonce },
      "no node took a transaction",
    );
    switch (failure) {
      case "underpriced":
        // No need to wait for a block: send with higher fees at once.
        await this.#raiseFees(item, attempt);
        if (item.attempts.at(-1) !== attempt) await this.#broadcast(item);
        return;
      case "needs_too_much_gas":
      case "refused":
        item.refusals += 1;
        if (item.refusals >= REFUSALS_BEFORE_GIVING_UP) await this.#abandonSigned(item);
        item.sent = undefined;
        return;
      case "nonce_too_high":
        // An earlier nonce is still pending: send again with the next head.
        item.sent = undefined;
        return;
      case "nonce_too_low":
      case "transport":
        // An own attempt may be mined or pending, or the node is wrong: check once before sending again.
        item.misses = MISSES_BEFORE_SENDING_AGAIN - 1;
        return;
      default:
        // Wait and send again: insufficient funds, pool full, or an inconclusive error.
        item.misses = MISSES_BEFORE_SENDING_AGAIN;
    }
  }

  /** Permanently rejected: send a no-op with its nonce. */
  async #abandonSigned(item: Monitored): Promise<void> {
    const { id, purpose } = item.transaction;
    if (item.transaction.abandon || purpose === "noop") return;
    await this.#options.transactions.abandon(id);
    item.transaction = { ...item.transaction, abandon: true };
    await this.#attemptAgain(item, true, await this.#options.fees.now());
  }

  /** Looks for receipts of all attempts; the one that has a receipt determines the outcome. */
  async #hasReceipt(item: Monitored): Promise<boolean> {
    const { rpc } = this.#options;
    for (const attempt of item.attempts) {
      const receipt = await rpc.call<Receipt | null>("eth_getTransactionReceipt", [attempt.hash]);
      if (receipt !== null) return this.#endBy(item, attempt, receipt);
    }
    return false;
  }

  async #endBy(item: Monitored, attempt: AttemptRow, receipt: Receipt): Promise<boolean> {
    const { rpc, contractAddress, log } = this.#options;
    const outcomes = await outcomesOf(rpc, contractAddress, item, attempt, receipt);
    if (outcomes.size < item.writes.length)
      log.warn(
        { transactionId: item.transaction.id, hash: receipt.transactionHash, writes: item.writes.length },
        "a shared transaction failed as a whole; its writes will be sent alone",
      );
    return this.#end(item, fateOf(receipt), outcomes);
  }

  /**
   * No receipt for a while: checks whether it is to be abandoned, is known, is stuck, was dropped, or lost its nonce.
   */
  async #checkPending(item: Monitored): Promise<void> {
    item.lookedAt = Date.now();
    await this.#reload(item);
    const newest = item.attempts.at(-1);
    if (newest === undefined || !isOpen(item.transaction)) return;
    if (isToBeNoop(item) && !newest.is_noop) return this.#replaceByNoop(item, newest);
    if (await this.#isKnown(item)) return this.#ifStuck(item, newest);
    item.misses += 1;
    if (await this.#fateIsProven(item)) return;
    if (item.misses >= MISSES_BEFORE_SENDING_AGAIN) item.sent = undefined;
  }

  async #reload(item: Monitored): Promise<void> {
    const { id, instance_id } = item.transaction;
    const now = await this.#options.transactions.carrier(id);
    if (now === undefined) throw new LostTransaction();
    if (isOpen(now.transaction) && now.transaction.instance_id !== instance_id) throw new LostTransaction();
    this.#ended(item, now);
  }

  async #isKnown(item: Monitored): Promise<boolean> {
    const { rpc } = this.#options;
    const found = await Promise.all(
      item.attempts.map(({ hash }) => rpc.call<unknown>("eth_getTransactionByHash", [hash])),
    );
    if (!found.some((transaction) => transaction !== null)) return false;
    item.misses = 0;
    this.#accepted(item);
    return true;
  }

  /** Known, next in its lane and old: raise the fees. Fees do not help a transaction queued behind another. */
  async #ifStuck(item: Monitored, newest: AttemptRow): Promise<void> {
    const { rpc, tuning } = this.#options;
    if (item.sent === undefined || Date.now() - item.sent.at < tuning.stuckAfterMs) return;
    const next = await rpc.call<string>("eth_getTransactionCount", [await this.#sender(item), "latest"]);
    if (Number(next) === item.transaction.nonce) await this.#raiseFees(item, newest);
  }

  async #raiseFees(item: Monitored, attempt: AttemptRow): Promise<void> {
    await this.#attemptAgain(item, attempt.is_noop, await this.#options.fees.toReplace(feesOf(attempt)));
  }

  /** An abandoned transaction is not sent again. */
  async #replaceIfAbandoned(item: Monitored): Promise<void> {
    const newest = item.attempts.at(-1);
    if (isToBeNoop(item) && newest?.is_noop === false) await this.#replaceByNoop(item, newest);
  }

  async #replaceByNoop(item: Monitored, newest: AttemptRow): Promise<void> {
    await this.#attemptAgain(item, true, await this.#options.fees.toReplace(feesOf(newest), true));
  }

  /** Without fees (the cap is reached), or when the executor refuses, pending attempts stay as they are. */
  async #attemptAgain(item: Monitored, isNoop: boolean, fees: Fees | undefined): Promise<void> {
    if (fees === undefined) return;
    try {
      await this.#attempt(item, isNoop, fees);
    } catch (error) {
      if (!(error instanceof KeywrightError) || error.retryable) throw error;
      this.#options.log.error(
        { err: error, transactionId: item.transaction.id },
        "the executor declines a replacement",
      );
    }
  }

  /**
   * The nonce is used: by an own attempt, whose receipt any endpoint may have; or by a foreign transaction, once that
   * is final. Until either is seen the fate is unknown, however long that takes.
   */
  async #fateIsProven(item: Monitored): Promise<boolean> {
    const { rpc, tuning, head, log } = this.#options;
    const nonce = item.transaction.nonce ?? 0;
    const sender = await this.#sender(item);
    const counts = await rpc.callEverywhere<string>("eth_getTransactionCount", [sender, "latest"]);
    if (!counts.some((count) => typeof count === "string" && Number(count) > nonce)) return false;
    const receipt = await this.#receiptAnywhere(item);
    if (receipt !== undefined) return this.#endBy(item, receipt.attempt, receipt.receipt);
    const use = await useOf(rpc, { sender, nonce });
    if (use === undefined || item.attempts.some(({ hash }) => hash === use.hash)) return false;
    if (head.number - use.block.number < tuning.finalityDepth) return false;
    log.error(
      { transactionId: item.transaction.id, hash: use.hash },
      "a transaction that is not this service's used a payer's nonce; the writes are sent again",
    );
    return this.#end(
      item,
      { state: "displaced" },
      item.transaction.abandon ? abandonedOutcomes(item.writes) : new Map(),
    );
  }

  async #receiptAnywhere(
    item: Monitored,
  ): Promise<{ readonly attempt: AttemptRow; readonly receipt: Receipt } | undefined> {
    for (const attempt of item.attempts) {
      const isThere = (answer: Receipt | null): boolean => answer !== null;
      const receipt = await this.#options.rpc.firstAccepted<Receipt | null>(
        "eth_getTransactionReceipt",
        [attempt.hash],
        isThere,
      );
      if (receipt !== undefined && receipt !== null) return { attempt, receipt };
    }
    return undefined;
  }

  #sender(item: Monitored): Promise<string> {
    return this.#options.transactions.payerAddress(item.transaction.payer);
  }
}

const isToBeNoop = ({ transaction: { purpose, abandon } }: Carrier): boolean => purpose === "noop" || abandon;

const feesOf = ({ max_fee, priority_fee }: AttemptRow): Fees => ({
  maxFeePerGas: BigInt(max_fee),
  maxPriorityFeePerGas: BigInt(priority_fee),
});

/** Chain, executor or database were temporarily unavailable. */
function isPassing(error: unknown): boolean {
  return error instanceof RpcError || (error instanceof KeywrightError && error.retryable);
}
