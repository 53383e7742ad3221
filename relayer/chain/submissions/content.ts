/** The content of a submission: a write sent by a payer itself, or a forward request signed by an owner. */
import type { ContractWrite } from "../../../protocol/executor";
import { encodeForward, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { encodeWrite, isLease } from "../abi/contract";
import type { SubmitRequest } from "../types";
import type { TurnKey } from "./accountQueue";
import { mayShareForwards } from "./forwardGas";

export type Content = { readonly write: ContractWrite } | { readonly forward: SignedForwardRequest };

export async function contentOf(request: SubmitRequest): Promise<Content> {
  if ("forward" in request)
    return { forward: typeof request.forward === "function" ? await request.forward() : request.forward };
  return { write: typeof request.write === "function" ? await request.write() : request.write };
}

export const bytesOf = (content: Content): string =>
  "write" in content ? encodeWrite(content.write) : encodeForward(content.forward);

/**
 * The contract does not nest batches, and a lease is a call of another one; a request with much gas or data would crowd
 * out others.
 */
export const mayShare = (content: Content): boolean =>
  "write" in content ? !("calls" in content.write) && !isLease(content.write) : mayShareForwards(content.forward);

/** Writes use `tryMulticall`, forward requests the forwarder: they never share a transaction. */
export const goTogether = (a: SubmitRequest, b: SubmitRequest): boolean => "forward" in a === "forward" in b;

/** A forward request signed by this service once its turn comes, so it can be signed again. */
export const isMadeInTurn = (request: SubmitRequest): boolean =>
  "forward" in request && typeof request.forward === "function";

export const signerOf = (request: SubmitRequest): Address | undefined =>
  "forward" in request ? request.signer : undefined;

/** The keys whose turn the request needs. */
export function turnKeysOf(request: SubmitRequest): readonly TurnKey[] {
  const signer = signerOf(request);
  return signer === undefined ? [request.accountId] : [request.accountId, signer];
}
