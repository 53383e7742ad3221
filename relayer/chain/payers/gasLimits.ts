/** The gas limits of transactions, and which calls may share one. */
import { KeywrightError } from "../../../protocol/errors";
import type { SignedForwardRequest } from "../../../protocol/forward";
import { MAX_PROBED_BYTES } from "../abi/batchProbe";
import type { Call } from "../submissions/simulation";

export interface MeasuredCall extends Call {
  readonly gas: bigint;
}

/** Gas that `tryMulticall` guarantees each call; a write that needs nearly as much goes alone. */
const CALL_GAS = 1_000_000n;
const BEFORE_LAST_CALL = (CALL_GAS * 64n) / 63n + 30_000n;
const TRANSACTION_GAS = 21_000n;
/** Overhead per call: the loop, copies, and the event of a failed call. */
const AROUND_CALL = 10_000n;
/** A byte of calldata, with its copies; of a request it is only decoded. */
const BYTE_GAS = 40n;
const REQUEST_BYTE_GAS = 16n;
/** Requests with a higher gas limit do not share a transaction: they could use up that much gas of the others. */
const MAX_SHARED_GAS = 1_000_000n;
const MAX_SHARED_BYTES = 8_192;

/** The gas limit of a single call's transaction: its estimate plus a margin, at most what one transaction may use. */
export function limitAlone(estimate: bigint, most: bigint): bigint {
  if (estimate > most)
    throw new KeywrightError(
      "invalid_value",
      "This write needs more gas than one transaction may use; split it into several.",
    );
  const limit = (estimate * 13n) / 10n + 20_000n;
  return limit < most ? limit : most;
}

/** The gas limit of calls that were simulated together, also where only one of them is left. */
export function limitTogether(calls: readonly MeasuredCall[], most: bigint): bigint {
  const [only] = calls;
  if (calls.length === 1 && only?.forward === undefined && only !== undefined)
    return limitAlone(TRANSACTION_GAS + only.gas + BYTE_GAS * BigInt(only.calldata.length / 2), most);
  const spare = calls.map(spareFor).reduce((a, b) => (a > b ? a : b), 0n);
  const gasOf = ({ gas, calldata, forward }: MeasuredCall): bigint =>
    (gas * 12n) / 10n +
    AROUND_CALL +
    (forward === undefined ? BYTE_GAS : REQUEST_BYTE_GAS) * BigInt(calldata.length / 2 + 64);
  return calls.reduce((sum, call) => sum + gasOf(call), TRANSACTION_GAS + spare);
}

/** Whether a call with this gas may share a transaction. Those of forward requests are limited by the requests. */
export const fitsIntoBatch = ({ calldata, forward, gas }: MeasuredCall): boolean =>
  forward !== undefined || (calldata.length / 2 < MAX_PROBED_BYTES / 8 && (gas * 13n) / 10n < CALL_GAS);

export const mayShareForwards = ({ gas, data }: SignedForwardRequest): boolean =>
  BigInt(gas) <= MAX_SHARED_GAS && data.length / 2 <= MAX_SHARED_BYTES;

/**
 * What must be left besides the gas that the calls used in the simulation: for each write what the contract guarantees
 * it; for requests 1/63 of the highest gas limit, or OpenZeppelin's forwarder reverts the transaction. Those limits
 * count for nothing else, since gas counts against the payer's balance and the executor's budget even if unused. A call
 * that uses more than in its simulation may take the gas of the others: the transaction then fails as a whole, and each
 * is sent alone (`submissions/recovery.ts`). The margin of a fifth also covers the 1/64 that a caller retains
 * (EIP-150).
 */
const spareFor = ({ forward }: Call): bigint =>
  forward === undefined ? BEFORE_LAST_CALL : BigInt(forward.gas) / 63n + 1n;
