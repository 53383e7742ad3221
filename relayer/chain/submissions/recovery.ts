/**
 * Takes up what nobody brings to its end: transactions without a monitor, and writes that wait for another transaction
 * because theirs failed as a whole or was displaced. Each is sent in a transaction of its own, since one of them may
 * use more gas than in its simulation.
 */
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import type { SubmissionFailure } from "../types";
import { failureOf } from "./outcomes";
import type { CarriedWrite, Carrier } from "./rows";
import type { SendingParts } from "./transactionMonitor";

/** The endpoints or the payers may be at fault, rather than single writes. */
const MAX_FAILED = 8;

export class Recovery {
  readonly #parts: SendingParts;

  constructor(parts: SendingParts) {
    this.#parts = parts;
  }

  async takeOver(): Promise<void> {
    const { transactions, monitor } = this.#parts;
    for (const transaction of await transactions.takeOver(monitor.watchedIds)) monitor.watch(transaction);
  }

  /**
   * Sends waiting writes as far as the lanes have capacity; the others are left to the next call. A few that cannot be
   * simulated or paid for at the moment do not keep the others.
   */
  async sendWaiting(): Promise<void> {
    const { transactions } = this.#parts;
    if (!(await transactions.isAnyWaiting())) return;
    await transactions.releaseWrites();
    const failed: unknown[] = [];
    const fail = (error: unknown): boolean => failed.push(error) < MAX_FAILED;
    for (const write of await transactions.waiting()) if (!(await this.#sendAlone(write).catch(fail))) break;
    if (failed.length > 0) throw failed[0];
  }

  /** False when no lane has capacity at the moment. Throws when none can pay. */
  async #sendAlone(write: CarriedWrite): Promise<boolean> {
    const { transactions, lanes, fees, monitor, log } = this.#parts;
    const { address } = await lanes.anyRegistered();
    const gasLimit = await this.#gasLimit(write, address).catch(finalFailureOf);
    if (typeof gasLimit !== "bigint") {
      await transactions.failWaiting(write, gasLimit);
      return true;
    }
    const { maxFeePerGas } = await fees.now();
    const lane = await lanes.tryEnter(gasLimit * maxFeePerGas);
    if (lane === undefined) return false;
    let carrier: Carrier | undefined;
    try {
      carrier = await transactions.carryAlone(write, lane.payer, gasLimit);
    } finally {
      lanes.leave(lane.payer, carrier !== undefined);
    }
    if (carrier === undefined) return true;
    log.warn({ submissionId: write.id, transactionId: carrier.transaction.id }, "a write is sent again, alone");
    monitor.watch(carrier.transaction, carrier.writes);
    return true;
  }

  /** That of the write alone, by simulation. */
  async #gasLimit(write: CarriedWrite, from: Address): Promise<bigint> {
    const { simulation } = this.#parts;
    const calldata = write.calldata ?? "0x";
    const forward = write.signer === null ? undefined : decodeForward(calldata);
    const atLeast = write.block_number ?? undefined;
    return simulation.limitAlone(await simulation.alone({ calldata, forward }, from, atLeast));
  }
}

/** Throws what is only for the moment. */
function finalFailureOf(error: unknown): SubmissionFailure {
  if (error instanceof KeywrightError && !error.retryable) return failureOf(error);
  throw error;
}
