/** Checks whether a forward request would succeed now, before anything is reserved or signed. */
import { KeywrightError } from "../../../protocol/errors";
import { forwarderCalldata, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { noncesCall } from "../abi/forwarder";
import { namedError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";

export interface ForwardSimulation {
  readonly rpc: RpcClient;
  readonly forwarder: () => Promise<Address>;
  readonly minBlock: () => Promise<number>;
  /** A payer, the sender of the transaction. */
  readonly payer: Address;
}

/**
 * The gas of the forwarder's transaction.
 * @throws KeywrightError `forward_nonce_used`, the contract's named error, `forward_gas_too_low`, `chain_unavailable`.
 */
export async function simulateForward(
  request: SignedForwardRequest,
  { rpc, forwarder, minBlock, payer }: ForwardSimulation,
): Promise<bigint> {
  const [to, block] = [await forwarder(), await minBlock()];
  const requireNonce = async (): Promise<void> => {
    const { values } = await rpc.callAt(block, (at) => [
      { method: "eth_call", params: [{ to, data: noncesCall(request.from) }, at] },
    ]);
    requireNext(BigInt(request.nonce), BigInt(values[0] as string));
  };
  await requireNonce();
  const needed = await estimateAsOwner(rpc, block, request);
  const call = { from: payer, to, data: forwarderCalldata([request], payer) };
  try {
    const { values } = await rpc.callAt(block, (at) => [{ method: "eth_estimateGas", params: [call, at] }]);
    return BigInt(values[0] as string);
  } catch (error) {
    const named = namedError(error);
    if (named === error) throw error;
    await requireNonce();
    // The call succeeds and the request is valid, so the gas it allows must be too low.
    throw new KeywrightError(
      "forward_gas_too_low",
      `The call takes about ${needed} gas; the request allows ${request.gas}.`,
      { required_gas: String(needed) },
    );
  }
}

/** The gas of the call when the owner sends it directly. @throws KeywrightError the contract's named error. */
export async function estimateAsOwner(
  rpc: RpcClient,
  minBlock: number,
  { from, to, data }: Pick<SignedForwardRequest, "from" | "to" | "data">,
): Promise<bigint> {
  try {
    const { values } = await rpc.callAt(minBlock, (at) => [
      { method: "eth_estimateGas", params: [{ from, to, data }, at] },
    ]);
    return BigInt(values[0] as string);
  } catch (error) {
    throw namedError(error);
  }
}

function requireNext(nonce: bigint, next: bigint): void {
  if (nonce === next) return;
  const what = nonce < next ? "was used already" : "comes too early";
  throw new KeywrightError("forward_nonce_used", `Nonce ${nonce} ${what}; the signer's next is ${next}.`, {
    next_nonce: String(next),
  });
}
