/**
 * Carries submissions from their nonce to their outcome. One loop per submission, each step safe to repeat: everything it knows is in the store, so any
 * instance can take the next step. All transactions of a submission have one nonce, so at most one of them can ever land.
 */
import type { Logger } from "pino";
import { KeywrightError } from "../../protocol/errors";
import type { Address } from "../../protocol/ids";
import type { FeeOracle, Fees } from "./fees";
import type { Head } from "./head";
import { LostSubmission, type AttemptRow, type Ending, type SubmissionRecords, type SubmissionRow } from "./records";
import { endingOf, NONCE_LOST } from "./endings";
import type { Receipt } from "./results";
import type { RpcClient } from "./rpc/client";
import { RpcError, type RpcFailure } from "./rpc/errors";
import type { ChainTuning } from "./settings";
import { sign, type Deed } from "./signing";
import { hasOutcome, wasNeverSigned } from "./states";
import type { ExecutorPort } from "./types";

export interface CarrierOptions {
  readonly rpc: RpcClient;
  readonly records: SubmissionRecords;
  readonly executor: ExecutorPort;
  readonly head: Head;
  readonly fees: FeeOracle;
  readonly contractAddress: Address;
  readonly log: Logger;
  readonly tuning: ChainTuning;
  /** Told of every submission that this instance saw to its end. */
  readonly onEnd: (row: SubmissionRow) => void;
}

/** What a loop remembers between steps; losing it costs time, nothing else. */
interface Cargo {
  row: SubmissionRow;
  attempts: AttemptRow[];
  /** Hash of the attempt that was handed to a node last, and when. */
  handed: { readonly hash: string; readonly at: number } | undefined;
  /** A node accepted it or knows it. */
  isKnownToNode: boolean;
  lookedAt: number;
  misses: number;
  refusals: number;
  /** Since when every endpoint says that the nonce is used and none of ours has a receipt. */
  nonceGoneSince: number | undefined;
}

const MISSES_BEFORE_SENDING_AGAIN = 3;
const REFUSALS_BEFORE_GIVING_UP = 3;
const MAX_ATTEMPTS = 12;

export class Carrier {
  readonly #carried = new Map<string, Promise<void>>();
  #stopping = false;

  constructor(private readonly options: CarrierOptions) {}

  get carriedIds(): readonly string[] {
    return [...this.#carried.keys()];
  }

  /** Takes the submission on, unless it is carried already. */
  carry(row: SubmissionRow): void {
    if (this.#stopping || this.#carried.has(row.id)) return;
    this.#carried.set(
      row.id,
      this.#loop(row).finally(() => this.#carried.delete(row.id)),
    );
  }

  /** Stops between two steps and hands everything back. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ids = this.carriedIds;
    await Promise.all(this.#carried.values());
    await this.options.records.handBack(ids);
  }

  async #loop(row: SubmissionRow): Promise<void> {
    const { log, head, tuning } = this.options;
    try {
      const attempts = wasNeverSigned(row.state) ? [] : await this.options.records.attempts(row.id);
      const cargo: Cargo = { row, attempts, handed: undefined, isKnownToNode: false, lookedAt: 0, misses: 0, refusals: 0, nonceGoneSince: undefined };
      while (!this.#stopping && !(await this.#stepSafely(cargo))) await head.next(Math.min(tuning.slowestPollMs, tuning.lookEveryMs));
    } catch (error) {
      // The store failed, or another instance took over: the sweep brings the submission back to somebody.
      if (!(error instanceof LostSubmission)) log.error({ err: error, submissionId: row.id }, "a submission was dropped; the sweep takes it up again");
      await this.options.records.handBack([row.id]).catch(() => undefined);
    }
  }

  /** True when there is nothing more to do. */
  async #stepSafely(cargo: Cargo): Promise<boolean> {
    try {
      return await this.#step(cargo);
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.options.log.warn({ err: error, submissionId: cargo.row.id }, "a step of a submission failed; it is tried again");
      return false;
    }
  }

  async #step(cargo: Cargo): Promise<boolean> {
    if (cargo.attempts.length === 0 && !(await this.#firstAttempt(cargo))) return hasOutcome(cargo.row.state);
    if (cargo.handed === undefined) {
      // Taken up from the store: it may be on its way, or even mined.
      if (cargo.row.state !== "signed" && (await this.#landed(cargo))) return true;
      await this.#hand(cargo);
    }
    if (await this.#landed(cargo)) return true;
    await this.#noteSent(cargo);
    if (Date.now() - cargo.lookedAt >= this.options.tuning.lookEveryMs) await this.#lookAfter(cargo);
    return hasOutcome(cargo.row.state);
  }

  /** Signs for the first time. False when that could not be done: later, or never. */
  async #firstAttempt(cargo: Cargo): Promise<boolean> {
    try {
      await this.#attempt(cargo, cargo.row.cancelled ? "nothing" : "write", await this.options.fees.now());
      return true;
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.retryable && Date.now() - cargo.row.created_at.getTime() < this.options.tuning.unsignedForAtMostMs) throw error;
      await this.#giveUpUnsigned(cargo, error);
      return false;
    }
  }

  async #giveUpUnsigned(cargo: Cargo, { code, detail, facts }: KeywrightError): Promise<void> {
    const { records, onEnd, log } = this.options;
    if (cargo.row.kind === "filler") {
      // It has no other end than being mined.
      log.error({ submissionId: cargo.row.id, code, detail }, "the executor declines to fill a nonce");
      return;
    }
    const filler = await records.giveUpUnsigned(cargo.row, { code, detail, facts: { ...facts } });
    cargo.row = (await records.load(cargo.row.id)) ?? cargo.row;
    onEnd(cargo.row);
    if (filler !== undefined) this.carry(filler);
  }

  async #attempt(cargo: Cargo, does: Deed, fees: Fees): Promise<void> {
    const signed = await sign(this.options.executor, cargo.row, does, fees);
    const attempt = await this.options.records.addAttempt(cargo.row, signed);
    cargo.attempts = [...cargo.attempts.filter(({ hash }) => hash !== attempt.hash), attempt];
    cargo.handed = undefined;
    if (wasNeverSigned(cargo.row.state)) cargo.row = { ...cargo.row, state: "signed" };
  }

  /** Gives the newest attempt to a node. */
  async #hand(cargo: Cargo): Promise<void> {
    const newest = cargo.attempts.at(-1);
    if (newest === undefined) return;
    const failure = await this.options.rpc.broadcast(newest.raw);
    cargo.handed = { hash: newest.hash, at: Date.now() };
    cargo.lookedAt = Date.now();
    cargo.misses = 0;
    if (failure === undefined) this.#accepted(cargo);
    else await this.#refused(cargo, newest, failure);
  }

  #accepted(cargo: Cargo): void {
    cargo.refusals = 0;
    cargo.nonceGoneSince = undefined;
    cargo.isKnownToNode = true;
  }

  /** Written down only for a transaction that has to wait for its block: one that is mined at once goes from signed to mined. */
  async #noteSent(cargo: Cargo): Promise<void> {
    if (!cargo.isKnownToNode || cargo.row.state !== "signed") return;
    cargo.row = { ...cargo.row, state: "sent" };
    await this.options.records.markSent(cargo.row.id);
  }

  async #refused(cargo: Cargo, attempt: AttemptRow, failure: RpcFailure): Promise<void> {
    const { log } = this.options;
    log.info({ submissionId: cargo.row.id, failure, payer: cargo.row.payer, nonce: cargo.row.nonce }, "no node took a transaction");
    switch (failure) {
      case "underpriced":
        return this.#raiseFees(cargo, attempt);
      case "needs_too_much_gas":
      case "refused":
        cargo.refusals += 1;
        if (cargo.refusals >= REFUSALS_BEFORE_GIVING_UP) await this.#giveUpSigned(cargo);
        cargo.handed = undefined;
        return;
      case "nonce_too_high":
        // A transaction before it is still on its way; it is handed over again with the next head.
        cargo.handed = undefined;
        return;
      case "nonce_too_low":
      case "transport":
        // One of ours may be mined or on its way, or the node is wrong: looked for once before it is sent again.
        cargo.misses = MISSES_BEFORE_SENDING_AGAIN - 1;
        return;
      default:
        // Wait and hand it over again: no gas, pool full, a node that cannot tell.
        cargo.misses = MISSES_BEFORE_SENDING_AGAIN;
    }
  }

  /** Nobody takes the write and nobody will: its nonce is filled with nothing. */
  async #giveUpSigned(cargo: Cargo): Promise<void> {
    if (cargo.row.cancelled || cargo.row.kind === "filler") return;
    await this.options.records.cancel(cargo.row.id);
    cargo.row = { ...cargo.row, cancelled: true };
    await this.#attemptAgain(cargo, "nothing", await this.options.fees.now());
  }

  /** Asks for the receipts of all attempts; the one that has any decides. */
  async #landed(cargo: Cargo): Promise<boolean> {
    const { rpc, records, onEnd, contractAddress } = this.options;
    for (const attempt of cargo.attempts) {
      const receipt = await rpc.call<Receipt | null>("eth_getTransactionReceipt", [attempt.hash]);
      if (receipt === null) continue;
      cargo.row = await records.end(cargo.row, await endingOf(rpc, contractAddress, cargo.row, attempt.does, receipt));
      onEnd(cargo.row);
      return hasOutcome(cargo.row.state);
    }
    return false;
  }

  /** No receipt for a while: is it known, is it stuck, was it dropped, was it cancelled, is it still ours? */
  async #lookAfter(cargo: Cargo): Promise<void> {
    cargo.lookedAt = Date.now();
    await this.#reload(cargo);
    const newest = cargo.attempts.at(-1);
    if (newest === undefined || hasOutcome(cargo.row.state)) return;
    if (cargo.row.cancelled && newest.does === "write") return this.#replaceByNothing(cargo, newest);
    if (await this.#isKnown(cargo)) return this.#ifStuck(cargo, newest);
    cargo.misses += 1;
    if (await this.#nonceIsGone(cargo)) return;
    if (cargo.misses >= MISSES_BEFORE_SENDING_AGAIN) cargo.handed = undefined;
  }

  async #reload(cargo: Cargo): Promise<void> {
    const row = await this.options.records.load(cargo.row.id);
    if (row === undefined) throw new LostSubmission();
    const isOurs = hasOutcome(row.state) || row.instance_id === cargo.row.instance_id;
    if (!isOurs) throw new LostSubmission();
    cargo.row = row;
    if (hasOutcome(row.state)) this.options.onEnd(row);
  }

  async #isKnown(cargo: Cargo): Promise<boolean> {
    const { rpc } = this.options;
    const found = await Promise.all(cargo.attempts.map(({ hash }) => rpc.call<unknown>("eth_getTransactionByHash", [hash])));
    if (!found.some((transaction) => transaction !== null)) return false;
    cargo.misses = 0;
    this.#accepted(cargo);
    return true;
  }

  /** Known, next in its lane and old: higher fees. What waits behind another transaction is not helped by fees. */
  async #ifStuck(cargo: Cargo, newest: AttemptRow): Promise<void> {
    const { rpc, tuning } = this.options;
    if (cargo.handed === undefined || Date.now() - cargo.handed.at < tuning.stuckAfterMs) return;
    const next = await rpc.call<string>("eth_getTransactionCount", [await this.#sender(cargo), "latest"]);
    if (Number(next) === cargo.row.nonce) await this.#raiseFees(cargo, newest);
  }

  async #raiseFees(cargo: Cargo, attempt: AttemptRow): Promise<void> {
    if (cargo.attempts.length < MAX_ATTEMPTS) await this.#attemptAgain(cargo, attempt.does, await this.options.fees.toReplace(feesOf(attempt)));
  }

  async #replaceByNothing(cargo: Cargo, newest: AttemptRow): Promise<void> {
    await this.#attemptAgain(cargo, "nothing", await this.options.fees.toReplace(feesOf(newest), true));
  }

  /** Without fees (the cap is reached), or when the executor declines them, what is on its way stays on its way. */
  async #attemptAgain(cargo: Cargo, does: Deed, fees: Fees | undefined): Promise<void> {
    if (fees === undefined) return;
    try {
      await this.#attempt(cargo, does, fees);
    } catch (error) {
      if (!(error instanceof KeywrightError) || error.retryable) throw error;
      this.options.log.error({ err: error, submissionId: cargo.row.id }, "the executor declines a replacement");
    }
  }

  /** Somebody else used the nonce: believed only when every endpoint says so, for long, and none has a receipt of ours. */
  async #nonceIsGone(cargo: Cargo): Promise<boolean> {
    const { rpc, records, tuning, onEnd } = this.options;
    const nonce = cargo.row.nonce ?? 0;
    const counts = await rpc.callEverywhere<string>("eth_getTransactionCount", [await this.#sender(cargo), "latest"]);
    const isGone = counts.every((count) => typeof count === "string" && Number(count) > nonce) && !(await this.#receiptAnywhere(cargo));
    if (!isGone) cargo.nonceGoneSince = undefined;
    else cargo.nonceGoneSince ??= Date.now();
    if (cargo.nonceGoneSince === undefined || Date.now() - cargo.nonceGoneSince < tuning.nonceLostAfterMs) return false;
    const ending: Ending = { state: "expired", error: NONCE_LOST, charged: false };
    cargo.row = await records.end(cargo.row, ending);
    onEnd(cargo.row);
    return true;
  }

  async #receiptAnywhere(cargo: Cargo): Promise<boolean> {
    const answers = await Promise.all(cargo.attempts.map(({ hash }) => this.options.rpc.callEverywhere<Receipt | null>("eth_getTransactionReceipt", [hash])));
    return answers.flat().some((answer) => answer !== null);
  }

  #sender(cargo: Cargo): Promise<string> {
    return this.options.records.payerAddress(cargo.row.payer);
  }
}

const feesOf = ({ max_fee, priority_fee }: AttemptRow): Fees => ({ maxFeePerGas: BigInt(max_fee), maxPriorityFeePerGas: BigInt(priority_fee) });

/** Chain, executor or database were out of reach for a moment. */
function isPassing(error: unknown): boolean {
  return error instanceof RpcError || (error instanceof KeywrightError && error.retryable);
}
