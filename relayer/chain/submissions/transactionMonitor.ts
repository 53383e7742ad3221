/**
 * Takes submissions from their nonce to their outcome. One loop per submission with idempotent steps: all state is in
 * the store, so any instance can take the next step. All transactions of a submission share one nonce, so at most one
 * can be mined.
 */
import type { Logger } from "pino";
import { KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle, Fees } from "../payers/fees";
import type { Head } from "../rpc/head";
import { LostSubmission, type SubmissionRecords } from "./records";
import { BATCH, type AttemptRow, type SubmissionRow, type Unit } from "./rows";
import { failedTogether, lostOutcomes, outcomeOfFailed, outcomesOf } from "./outcomes";
import type { OutcomeFeed } from "./outcomeFeed";
import { useOf } from "./evidence";
import type { Receipt } from "../abi/receipts";
import type { RpcClient } from "../rpc/client";
import { RpcError, type RpcFailure } from "../../../protocol/rpc/errors";
import type { ChainTuning } from "../settings";
import { sign, type TransactionKind } from "./signing";
import { hasOutcome, wasNeverSigned } from "./states";
import type { ExecutorPort } from "../types";

export interface TransactionMonitorOptions {
  readonly rpc: RpcClient;
  readonly records: SubmissionRecords;
  readonly executor: ExecutorPort;
  readonly head: Head;
  readonly fees: FeeOracle;
  readonly contractAddress: Address;
  readonly log: Logger;
  readonly tuning: ChainTuning;
  /** Receives every submission whose outcome this instance has seen. */
  readonly outcomes: OutcomeFeed;
}

/** Per-loop state; losing it costs only time. */
interface Monitored {
  row: SubmissionRow;
  /** The members, if it is a batch. */
  members: readonly SubmissionRow[];
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

  /** Watches the submission, unless it is watched already. */
  watch(row: SubmissionRow, members?: readonly SubmissionRow[]): void {
    if (this.#stopping || this.#watched.has(row.id)) return;
    this.#watched.set(
      row.id,
      this.#loop(row, members).finally(() => this.#watched.delete(row.id)),
    );
  }

  /** Stops between two steps and releases all submissions. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ids = this.watchedIds;
    await Promise.all(this.#watched.values());
    await this.#options.records.release(ids);
  }

  async #loop(row: SubmissionRow, given: readonly SubmissionRow[] | undefined): Promise<void> {
    const { log, head, tuning } = this.#options;
    try {
      const members = given ?? (row.kind === BATCH ? await this.#options.records.members(row.id) : []);
      const attempts = wasNeverSigned(row.state) ? [] : await this.#options.records.attempts(row.id);
      const item: Monitored = {
        row,
        members,
        attempts,
        sent: undefined,
        isKnownToNode: false,
        lookedAt: 0,
        misses: 0,
        refusals: 0,
      };
      while (!this.#stopping && !(await this.#stepSafely(item)))
        await head.next(Math.min(tuning.slowestPollMs, tuning.lookEveryMs));
    } catch (error) {
      // The store failed, or another instance took over: the sweep has the submission watched again.
      if (!(error instanceof LostSubmission))
        log.error({ err: error, submissionId: row.id }, "a submission was dropped; the sweep takes it up again");
      await this.#options.records.release([row.id]).catch(() => undefined);
    }
  }

  /** True when nothing is left to do. */
  async #stepSafely(item: Monitored): Promise<boolean> {
    try {
      return await this.#step(item);
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#options.log.warn(
        { err: error, submissionId: item.row.id },
        "a step of a submission failed; it is tried again",
      );
      return false;
    }
  }

  async #step(item: Monitored): Promise<boolean> {
    if (item.attempts.length === 0 && !(await this.#firstAttempt(item))) return hasOutcome(item.row.state);
    if (item.sent === undefined) {
      // Loaded from the store: it may be pending or already mined.
      if (item.row.state !== "signed" && (await this.#hasReceipt(item))) return true;
      await this.#replaceIfCancelled(item);
      await this.#broadcast(item);
    }
    if (await this.#hasReceipt(item)) return true;
    await this.#noteSent(item);
    if (Date.now() - item.lookedAt >= this.#options.tuning.lookEveryMs) await this.#checkPending(item);
    return hasOutcome(item.row.state);
  }

  /** Signs for the first time. Throws when it may be retried; false when it is abandoned (fillers are tried again). */
  async #firstAttempt(item: Monitored): Promise<boolean> {
    try {
      await this.#attempt(item, item.row.cancelled ? "nothing" : "write", await this.#options.fees.now());
      return true;
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.retryable && Date.now() - item.row.created_at.getTime() < this.#options.tuning.unsignedForAtMostMs)
        throw error;
      await this.#giveUpUnsigned(item, error);
      return false;
    }
  }

  async #giveUpUnsigned(item: Monitored, { code, detail, facts }: KeywrightError): Promise<void> {
    const { records, log } = this.#options;
    if (item.row.kind === "filler") {
      // A filler can only end by being mined.
      log.error({ submissionId: item.row.id, code, detail }, "the executor declines to fill a nonce");
      return;
    }
    const { unit, filler } = await records.giveUpUnsigned(item, { code, detail, facts: { ...facts } });
    this.#ended(item, unit);
    if (filler !== undefined) this.watch(filler);
  }

  /** Takes over the unit as stored, and publishes its outcomes. */
  #ended(item: Monitored, { row, members }: Unit): void {
    item.row = row;
    item.members = members;
    if (!hasOutcome(row.state)) return;
    for (const ended of [row, ...members]) if (hasOutcome(ended.state)) this.#options.outcomes.publish(ended);
  }

  async #attempt(item: Monitored, does: TransactionKind, fees: Fees): Promise<void> {
    const signed = await sign(this.#options.executor, item, does, fees);
    const attempt = await this.#options.records.addAttempt(item.row, signed);
    item.attempts = [...item.attempts.filter(({ hash }) => hash !== attempt.hash), attempt];
    item.sent = undefined;
    if (wasNeverSigned(item.row.state)) item.row = { ...item.row, state: "signed" };
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
  async #noteSent(item: Monitored): Promise<void> {
    if (!item.isKnownToNode || item.row.state !== "signed") return;
    item.row = { ...item.row, state: "sent" };
    await this.#options.records.markSent(item.row.id);
  }

  async #refused(item: Monitored, attempt: AttemptRow, failure: RpcFailure): Promise<void> {
    const { log } = this.#options;
    log.info(
      { submissionId: item.row.id, failure, payer: item.row.payer, nonce: item.row.nonce },
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
        if (item.refusals >= REFUSALS_BEFORE_GIVING_UP) await this.#giveUpSigned(item);
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
  async #giveUpSigned(item: Monitored): Promise<void> {
    if (item.row.cancelled || item.row.kind === "filler") return;
    await this.#options.records.cancel(item.row.id);
    item.row = { ...item.row, cancelled: true };
    await this.#attemptAgain(item, "nothing", await this.#options.fees.now());
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

  async #endBy(item: Monitored, { does }: AttemptRow, receipt: Receipt): Promise<boolean> {
    const { rpc, records, contractAddress } = this.#options;
    if (failedTogether(item, does, receipt)) return this.#endFailedBatch(item, receipt);
    this.#ended(item, await records.end(item, await outcomesOf(rpc, contractAddress, item, does, receipt)));
    return hasOutcome(item.row.state);
  }

  /** Stores the failure of the batch only: its members stay open until `Separation` sends them alone. */
  async #endFailedBatch(item: Monitored, receipt: Receipt): Promise<boolean> {
    const { records, log } = this.#options;
    const members = item.members.length;
    this.#ended(item, await records.end({ row: item.row, members: [] }, outcomeOfFailed(item.row, receipt)));
    log.warn(
      { submissionId: item.row.id, transaction: receipt.transactionHash, members },
      "a shared transaction failed as a whole; its writes will be sent alone",
    );
    return hasOutcome(item.row.state);
  }

  /**
   * No receipt for a while: checks whether it was cancelled, is still known, is stuck, was dropped, or lost its nonce.
   */
  async #checkPending(item: Monitored): Promise<void> {
    item.lookedAt = Date.now();
    await this.#reload(item);
    const newest = item.attempts.at(-1);
    if (newest === undefined || hasOutcome(item.row.state)) return;
    if (item.row.cancelled && newest.does === "write") return this.#replaceByNoop(item, newest);
    if (await this.#isKnown(item)) return this.#ifStuck(item, newest);
    item.misses += 1;
    if (await this.#fateIsProven(item)) return;
    if (item.misses >= MISSES_BEFORE_SENDING_AGAIN) item.sent = undefined;
  }

  async #reload(item: Monitored): Promise<void> {
    const row = await this.#options.records.load(item.row.id);
    if (row === undefined) throw new LostSubmission();
    if (hasOutcome(row.state))
      return this.#ended(item, (await this.#options.records.unit(row.id)) ?? { row, members: [] });
    if (row.instance_id !== item.row.instance_id) throw new LostSubmission();
    item.row = row;
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
    if (Number(next) === item.row.nonce) await this.#raiseFees(item, newest);
  }

  async #raiseFees(item: Monitored, attempt: AttemptRow): Promise<void> {
    await this.#attemptAgain(item, attempt.does, await this.#options.fees.toReplace(feesOf(attempt)));
  }

  /** A cancelled write is not sent again. */
  async #replaceIfCancelled(item: Monitored): Promise<void> {
    const newest = item.attempts.at(-1);
    if (item.row.cancelled && newest?.does === "write") await this.#replaceByNoop(item, newest);
  }

  async #replaceByNoop(item: Monitored, newest: AttemptRow): Promise<void> {
    await this.#attemptAgain(item, "nothing", await this.#options.fees.toReplace(feesOf(newest), true));
  }

  /** Without fees (the cap is reached), or when the executor refuses, pending attempts stay as they are. */
  async #attemptAgain(item: Monitored, does: TransactionKind, fees: Fees | undefined): Promise<void> {
    if (fees === undefined) return;
    try {
      await this.#attempt(item, does, fees);
    } catch (error) {
      if (!(error instanceof KeywrightError) || error.retryable) throw error;
      this.#options.log.error({ err: error, submissionId: item.row.id }, "the executor declines a replacement");
    }
  }

  /**
   * The nonce is used: by an own attempt, whose receipt any endpoint may have; or by a foreign transaction, once that
   * is final. Until either is seen the fate is unknown, however long that takes.
   */
  async #fateIsProven(item: Monitored): Promise<boolean> {
    const { rpc, records, tuning, head, log } = this.#options;
    const nonce = item.row.nonce ?? 0;
    const sender = await this.#sender(item);
    const counts = await rpc.callEverywhere<string>("eth_getTransactionCount", [sender, "latest"]);
    if (!counts.some((count) => typeof count === "string" && Number(count) > nonce)) return false;
    const receipt = await this.#receiptAnywhere(item);
    if (receipt !== undefined) return this.#endBy(item, receipt.attempt, receipt.receipt);
    const use = await useOf(rpc, { sender, nonce });
    if (use === undefined || item.attempts.some(({ hash }) => hash === use.hash)) return false;
    if (head.number - use.block.number < tuning.finalityDepth) return false;
    log.error({ submissionId: item.row.id, transaction: use.hash }, "a foreign transaction used a payer's nonce");
    this.#ended(item, await records.end(item, lostOutcomes(item)));
    return true;
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
    return this.#options.records.payerAddress(item.row.payer);
  }
}

const feesOf = ({ max_fee, priority_fee }: AttemptRow): Fees => ({
  maxFeePerGas: BigInt(max_fee),
  maxPriorityFeePerGas: BigInt(priority_fee),
});

/** Chain, executor or database were temporarily unavailable. */
function isPassing(error: unknown): boolean {
  return error instanceof RpcError || (error instanceof KeywrightError && error.retryable);
}
