/**
 * Gas limit of several forward requests in one transaction. The forwarder reverts the whole transaction when it cannot
 * give a call the gas its request names, so the limit covers what each names, not its estimate: no request can starve
 * the next.
 */
import type { SignedForwardRequest } from "../../../protocol/forward";

/** Limit for requests that share a transaction; also what `tryMulticall` guarantees each call. */
const MOST_SHARED_GAS = 1_000_000n;
const MOST_SHARED_BYTES = 8_192;
const TRANSACTION_GAS = 21_000n;
/** Gas for signature check, nonce, event and the call itself. */
const AROUND_REQUEST = 60_000n;
/** Gas per byte for calldata, its copies and its hash. */
const BYTE_GAS = 40n;
const FIELDS_BYTES = 512;

const bytesOf = ({ data }: SignedForwardRequest): number => (data.length - 2) / 2;

export const mayShareForwards = (request: SignedForwardRequest): boolean =>
  BigInt(request.gas) <= MOST_SHARED_GAS && bytesOf(request) <= MOST_SHARED_BYTES;

/** EIP-150: a call gets at most 63/64 of the remaining gas. */
export function limitOfForwards(requests: readonly SignedForwardRequest[]): bigint {
  const each = (request: SignedForwardRequest): bigint =>
    (BigInt(request.gas) * 64n) / 63n + AROUND_REQUEST + BYTE_GAS * BigInt(bytesOf(request) + FIELDS_BYTES);
  return requests.reduce((sum, request) => sum + each(request), TRANSACTION_GAS);
}
