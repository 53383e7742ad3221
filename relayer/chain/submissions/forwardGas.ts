/**
 * Gas limit of several forward requests in one transaction. Based on the gas their calls used in the simulation, not
 * on the limits in the requests: the full limit counts against the payer's balance and the executor's budget, even if
 * unused. A call that uses more than in its simulation may take the gas of the others; the transaction then fails as a
 * whole, and each is sent alone (`separation.ts`).
 */
import type { SignedForwardRequest } from "../../../protocol/forward";

/** Requests with a higher gas limit do not share a transaction: they could use up that much gas of the others. */
const MOST_SHARED_GAS = 1_000_000n;
const MOST_SHARED_BYTES = 8_192;
const TRANSACTION_GAS = 21_000n;
/** Overhead per request: the loop and its part of the calldata's decoding. */
const AROUND_REQUEST = 10_000n;
/** Cost of a non-zero byte of calldata. */
const BYTE_GAS = 16n;
const FIELDS_BYTES = 512;

export interface MeasuredForward {
  readonly request: SignedForwardRequest;
  /** Gas of the forwarder's `execute`: signature, nonce and event included. */
  readonly gas: bigint;
}

const bytesOf = ({ data }: SignedForwardRequest): number => (data.length - 2) / 2;

export const mayShareForwards = (request: SignedForwardRequest): boolean =>
  BigInt(request.gas) <= MOST_SHARED_GAS && bytesOf(request) <= MOST_SHARED_BYTES;

/**
 * OpenZeppelin's forwarder reverts the transaction unless 1/63 of a request's gas limit is left after its call. The
 * margin of a fifth over the simulated gas also covers the 1/64 that a caller retains (EIP-150).
 */
export function limitOfForwards(requests: readonly MeasuredForward[]): bigint {
  const spare = requests.reduce((most, { request }) => larger(most, BigInt(request.gas) / 63n + 1n), 0n);
  const each = ({ request, gas }: MeasuredForward): bigint =>
    (gas * 12n) / 10n + AROUND_REQUEST + BYTE_GAS * BigInt(bytesOf(request) + FIELDS_BYTES);
  return requests.reduce((sum, request) => sum + each(request), TRANSACTION_GAS + spare);
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
