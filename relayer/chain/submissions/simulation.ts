/**
 * Simulates writes and forward requests with a payer as the sender: whether they would succeed, and the gas that their
 * transaction needs. Nothing is signed or spent.
 */
import { targetOf } from "../../../protocol/budgets";
import { KeywrightError } from "../../../protocol/errors";
import { forwarderCalldata, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import type { RpcCall } from "../../../protocol/rpc/endpoint";
import { RpcError } from "../../../protocol/rpc/errors";
import { BATCH_PROBE, decodeProbe, encodeProbe, type ProbedCall } from "../abi/batchProbe";
import { noncesCall } from "../abi/forwarder";
import { namedError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";

export interface SimulationOptions {
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  readonly forwarder: () => Promise<Address>;
  readonly minBlock: () => Promise<number>;
}

/** A write's calldata, or a forward request and its bytes in the store. */
export interface Call {
  readonly calldata: string;
  readonly forward?: SignedForwardRequest | undefined;
}

export class Simulation {
  readonly #options: SimulationOptions;

  constructor(options: SimulationOptions) {
    this.#options = options;
  }

  /**
   * The gas of one call in its own transaction, intrinsic cost included.
   * @throws KeywrightError the contract's named error, `forward_nonce_used`, `forward_gas_too_low`,
   * `no_payer_available`, `chain_unavailable`.
   */
  async alone({ calldata, forward }: Call, from: Address, atLeast?: number): Promise<bigint> {
    const minBlock = atLeast ?? (await this.#options.minBlock());
    if (forward !== undefined) return this.#forwardAlone(forward, from, minBlock);
    const to = targetOf(calldata, this.#options.contractAddress);
    return this.#estimate(minBlock, { from, to, data: calldata }).catch((error: unknown) => {
      throw refusalOf(error);
    });
  }

  /** The gas of a call that its owner sends. @throws KeywrightError the contract's named error. */
  async asOwner(from: Address, data: string, atLeast?: number): Promise<bigint> {
    const { contractAddress: to, minBlock } = this.#options;
    return this.#estimate(atLeast ?? (await minBlock()), { from, to, data }).catch((error: unknown) => {
      throw namedError(error);
    });
  }

  async #forwardAlone(request: SignedForwardRequest, payer: Address, minBlock: number): Promise<bigint> {
    const to = await this.#options.forwarder();
    try {
      return await this.#estimate(minBlock, { from: payer, to, data: forwarderCalldata([request], payer) });
    } catch (error) {
      if (namedError(error) === error) throw error;
      await this.#requireNext(to, request, minBlock);
      const needed = await this.asOwner(request.from, request.data, minBlock);
      // The call succeeds and the request is valid, so the gas it allows must be too low.
      throw new KeywrightError(
        "forward_gas_too_low",
        `The call takes about ${needed} gas; the request allows ${request.gas}.`,
        { required_gas: String(needed) },
      );
    }
  }

  async #requireNext(to: Address, { from, nonce }: SignedForwardRequest, minBlock: number): Promise<void> {
    const next = BigInt(await this.#ask(minBlock, "eth_call", { to, data: noncesCall(from) }));
    if (BigInt(nonce) === next) return;
    const what = BigInt(nonce) < next ? "was used already" : "comes too early";
    throw new KeywrightError("forward_nonce_used", `Nonce ${nonce} ${what}; the signer's next is ${next}.`, {
      next_nonce: String(next),
    });
  }

  async #estimate(minBlock: number, call: object): Promise<bigint> {
    return BigInt(await this.#ask(minBlock, "eth_estimateGas", call));
  }

  async #ask(minBlock: number, method: string, call: object, ...override: readonly object[]): Promise<string> {
    const callsAt = (block: string): readonly RpcCall[] => [{ method, params: [call, block, ...override] }];
    const { values } = await this.#options.rpc.callAt(minBlock, callsAt, { once: override.length > 0 });
    return values[0] as string;
  }

  /**
   * Simulates several writes, or several forward requests, each on the state left by the previous ones, with one
   * `eth_call`. Fewer results than calls when the node's gas limit was reached; undefined where the node does not
   * support it.
   */
  async inSequence(calls: readonly Call[], payer: Address): Promise<readonly ProbedCall[] | undefined> {
    const { minBlock, contractAddress, forwarder } = this.#options;
    const isForwards = calls.some(({ forward }) => forward !== undefined);
    const target = isForwards ? await forwarder() : contractAddress;
    const dataOf = ({ calldata, forward }: Call): string =>
      forward === undefined ? calldata : forwarderCalldata([forward], payer);
    const probe = { from: payer, to: payer, data: encodeProbe(target, calls.map(dataOf)) };
    try {
      const override = { [payer]: { code: BATCH_PROBE } };
      const probed = decodeProbe(await this.#ask(await minBlock(), "eth_call", probe, override));
      return probed.length === 0 ? undefined : probed;
    } catch (error) {
      // An endpoint without state overrides, or one that answers oddly.
      if (error instanceof RpcError || error instanceof RangeError || error instanceof TypeError) return undefined;
      throw error;
    }
  }
}

/** Why a call failed in a simulation, with this revert data. */
export const refusalIn = (reason: string): unknown => refusalOf(new RpcError("reverted", "execution reverted", reason));

/** `NotAuthorized` is about the sender, which is a payer of this service: not the client's fault. */
function refusalOf(error: unknown): unknown {
  const named = namedError(error);
  if (!(named instanceof KeywrightError) || named.code !== "not_authorized") return named;
  return new KeywrightError(
    "no_payer_available",
    "The contract does not know this service's API payer. Nothing was sent or charged.",
    {},
    { cause: error, retryAfterSeconds: 10 },
  );
}
