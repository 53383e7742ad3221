/**
 * Takes up what nobody brings to its end: transactions without a monitor, and writes that wait for another transaction
 * because theirs failed as a whole or was displaced. One write of a shared transaction may have used more gas than in
 * its simulation and left too little for the others, so each is sent in a transaction of its own, with its id and
 * reservation. No account is charged for the failed transaction.
 */
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward } from "../../../protocol/forward";
import type { SubmissionFailure } from "../types";
import { cameToNothing, failureOf } from "./outcomes";
import type { CarriedWrite, Carrier } from "./rows";
import type { SendingParts } from "./transactionMonitor";

type Verdict = { readonly gasLimit: bigint } | { readonly error: SubmissionFailure };

export class Recovery {
  readonly #parts: SendingParts;

  constructor(parts: SendingParts) {
    this.#parts = parts;
  }

  async takeOver(): Promise<void> {
    const { transactions, monitor } = this.#parts;
    for (const transaction of await transactions.takeOver(monitor.watchedIds)) monitor.watch(transaction);
  }

  /** Sends waiting writes as far as the lanes have capacity; the others are left to the next call. */
  async sendWaiting(): Promise<void> {
    const { transactions } = this.#parts;
    await transactions.releaseWrites();
    for (const write of await transactions.waiting()) if (!(await this.#sendAlone(write))) return;
  }

  /** False when no lane has capacity or can pay at the moment. */
  async #sendAlone(write: CarriedWrite): Promise<boolean> {
    const { transactions, lanes, fees, monitor, outcomes, log } = this.#parts;
    const verdict = await this.#tryAlone(write);
    if ("error" in verdict) {
      const ended = await transactions.failWaiting(write, verdict.error);
      if (ended !== undefined) outcomes.emit("write", ended);
      return true;
    }
    const { maxFeePerGas } = await fees.now();
    const lane = await lanes.tryEnter(verdict.gasLimit * maxFeePerGas).catch(noneIfUnaffordable);
    if (lane === undefined) return false;
    let carrier: Carrier | undefined;
    try {
      carrier = await transactions.carryAlone(write, lane.payer, verdict.gasLimit);
    } finally {
      if (carrier === undefined) lanes.leave(lane.payer);
      else lanes.begin(lane.payer);
    }
    if (carrier === undefined) return true;
    log.warn({ submissionId: write.id, transactionId: carrier.transaction.id }, "a write is sent again, alone");
    monitor.watch(carrier.transaction, carrier.writes);
    return true;
  }

  /** Simulates the write alone. Throws when chain or service is temporarily unavailable. */
  async #tryAlone(write: CarriedWrite): Promise<Verdict> {
    const { simulation, lanes } = this.#parts;
    const { address } = await lanes.anyRegistered();
    const calldata = write.calldata ?? "0x";
    try {
      const forward = write.signer === null ? undefined : decodeForward(calldata);
      const gas = await simulation.alone({ calldata, forward }, address, write.block_number ?? 0);
      return { gasLimit: simulation.limitAlone(gas) };
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.code === "no_payer_available") return { error: cameToNothing(write, "failed together") };
      if (error.retryable) throw error;
      return { error: failureOf(error) };
    }
  }
}

function noneIfUnaffordable(error: unknown): undefined {
  if (error instanceof KeywrightError && error.code === "no_payer_available") return undefined;
  throw error;
}
