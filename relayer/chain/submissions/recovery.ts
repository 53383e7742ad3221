/**
 * Takes up what nobody brings to its end: transactions without a monitor, and writes that wait for another transaction
 * because theirs failed as a whole or was displaced. Each is sent in a transaction of its own, since one of them may
 * use more gas than in its simulation.
 */
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward } from "../../../protocol/forward";
import { failureOf } from "../abi/failures";
import { limitAlone } from "../payers/gasLimits";
import type { SubmissionFailure } from "../types";
import type { CarriedWrite, Carrier } from "./rows";
import type { SendingParts } from "./transactionMonitor";

/** The endpoints or the payers may be at fault, rather than single writes. */
const MAX_FAILED = 8;

export async function takeOver({ transactions, monitor }: SendingParts): Promise<void> {
  for (const transaction of await transactions.takeOver(monitor.watchedIds)) monitor.watch(transaction);
}

/**
 * Sends waiting writes as far as the lanes have capacity; the others are left to the next call. A few that cannot be
 * simulated or paid for at the moment do not keep the others.
 */
export async function sendWaiting(parts: SendingParts): Promise<void> {
  const failed: unknown[] = [];
  const fail = (error: unknown): boolean => failed.push(error) < MAX_FAILED;
  const waiting = await parts.transactions.waiting();
  // What was answered as failed needs no lane.
  const ordered = [...waiting.filter(({ before }) => before?.error), ...waiting.filter(({ before }) => !before?.error)];
  for (const write of ordered) if (!(await sendAlone(parts, write).catch(fail))) break;
  if (failed.length > 0) throw failed[0];
}

/** False when no lane has capacity at the moment. Throws when none can pay. */
async function sendAlone(parts: SendingParts, write: CarriedWrite): Promise<boolean> {
  const { transactions, lanes, fees, monitor, log } = parts;
  const gasLimit = await limitOf(parts, write);
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

/** The gas limit of the write alone, or why it fails for good. Throws what is only for the moment. */
async function limitOf(parts: SendingParts, write: CarriedWrite): Promise<bigint | SubmissionFailure> {
  // What was answered as failed is not sent again.
  if (write.before?.error) return write.before.error as SubmissionFailure;
  const calldata = write.calldata ?? "0x";
  const forward = write.signer === null ? undefined : decodeForward(calldata);
  const { address } = await parts.lanes.anyRegistered();
  try {
    const gas = await parts.simulation.alone({ calldata, forward }, address, write.block_number ?? undefined);
    return limitAlone(gas, parts.tuning.maxTransactionGas);
  } catch (error) {
    if (error instanceof KeywrightError && !error.retryable) return failureOf(error);
    throw error;
  }
}
