/** Asks the contract, as a payer, whether writes would succeed and what gas they would take. Nothing is signed or spent. */
import { KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import { mayAnswerElsewhere, RpcError } from "../../../protocol/rpc/errors";
import { BATCH_PROBE, decodeProbe, encodeProbe, LONGEST_PROBED_BYTES, type ProbedCall } from "../abi/batchProbe";
import { namedError, revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";

export interface SimulationOptions {
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  /** The block reads must not be older than. */
  readonly minBlock: () => Promise<number>;
  readonly maxTransactionGas: bigint;
}

/** What a write would do: the gas it takes, or why it would fail. */
export type Simulated = { readonly gas: bigint } | { readonly refused: unknown };

/** `tryMulticall` guarantees each call this much; a write that needs nearly as much goes alone. */
const CALL_GAS = 1_000_000n;
const BEFORE_LAST_CALL = (CALL_GAS * 64n) / 63n + 30_000n;
const TRANSACTION_GAS = 21_000n;
/** What the loop, the copies and a failed call's event take. */
const AROUND_CALL = 9_000n;
const BYTE_GAS = 40n;

export class Simulation {
  /** Endpoints that know no state overrides are asked about each write by itself. */
  #probeWorks = true;

  constructor(private readonly options: SimulationOptions) {}

  /** The gas one write takes in a transaction of its own, its fixed cost included. A revert throws the named error. */
  async alone(calldata: string, from: Address): Promise<bigint> {
    const { rpc, contractAddress, minBlock } = this.options;
    const call = { from, to: contractAddress, data: calldata };
    try {
      const { values } = await rpc.callAt(await minBlock(), (block) => [{ method: "eth_estimateGas", params: [call, block] }]);
      return BigInt(values[0] as string);
    } catch (error) {
      throw ourPayerIsUnknown(error) ?? namedError(error);
    }
  }

  /** Several writes in this order, each after the ones before it: one `eth_call`. Fewer answers than writes when the node's gas ended before. */
  async together(calls: readonly string[], from: Address): Promise<readonly Simulated[]> {
    const probed = this.#probeWorks ? await this.#probe(calls, from) : undefined;
    if (probed !== undefined) return probed.map(simulatedOf);
    return Promise.all(
      calls.map((call) =>
        this.alone(call, from).then(
          (gas): Simulated => ({ gas }),
          (refused: unknown): Simulated => ({ refused }),
        ),
      ),
    );
  }

  /** The gas limit of a transaction of one write, given its estimate: with a margin that ends where the protocol ends a transaction. */
  limitAlone(estimate: bigint): bigint {
    const { maxTransactionGas } = this.options;
    if (estimate > maxTransactionGas) {
      throw new KeywrightError("invalid_value", "This write needs more gas than one transaction may use; split it into several.");
    }
    const limit = (estimate * 13n) / 10n + 20_000n;
    return limit < maxTransactionGas ? limit : maxTransactionGas;
  }

  /** The gas limit of a batch: before each call there has to be what the contract guarantees it. */
  limitTogether(calls: readonly { readonly calldata: string; readonly gas: bigint }[]): bigint {
    const each = calls.reduce((sum, { calldata, gas }) => sum + (gas * 12n) / 10n + AROUND_CALL + BYTE_GAS * BigInt(calldata.length / 2 + 64), 0n);
    return TRANSACTION_GAS + each + BEFORE_LAST_CALL;
  }

  /** True for a write that may share a transaction. */
  fitsIntoBatch(calldata: string, gas: bigint): boolean {
    return calldata.length / 2 < LONGEST_PROBED_BYTES / 8 && (gas * 13n) / 10n < CALL_GAS;
  }

  /** Undefined where the node cannot do it. */
  async #probe(calls: readonly string[], from: Address): Promise<readonly ProbedCall[] | undefined> {
    const { rpc, contractAddress, minBlock } = this.options;
    const params = [{ from, to: from, data: encodeProbe(contractAddress, calls) }];
    const override = { [from]: { code: BATCH_PROBE } };
    try {
      const { values } = await rpc.callAt(await minBlock(), (block) => [{ method: "eth_call", params: [...params, block, override] }], { once: true });
      const probed = decodeProbe(values[0] as string);
      if (probed.length > 0) return probed;
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof RangeError || error instanceof TypeError)) throw error;
      if (error instanceof RpcError && mayAnswerElsewhere(error.failure)) return undefined;
    }
    this.#probeWorks = false;
    return undefined;
  }
}

function simulatedOf({ succeeded, gas, reason }: ProbedCall): Simulated {
  if (succeeded) return { gas };
  const error = new RpcError("reverted", "execution reverted", reason);
  return { refused: ourPayerIsUnknown(error) ?? revertError(reason, error) };
}

/** `NotAuthorized` names the sender, and the sender is our payer: not the client's fault. */
function ourPayerIsUnknown(error: unknown): KeywrightError | undefined {
  const named = namedError(error);
  if (!(named instanceof KeywrightError) || named.code !== "not_authorized") return undefined;
  return new KeywrightError(
    "no_payer_available",
    "The contract does not know this service's API payer. Nothing was sent or charged.",
    {},
    { cause: error, retryAfterSeconds: 10 },
  );
}
