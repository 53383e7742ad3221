/**
 * Simulates writes with a payer as the sender: whether they would succeed and their gas. Nothing is signed or spent.
 */
import { targetOf } from "../../../protocol/budgets";
import { ERRORS, KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import { mayAnswerElsewhere, RpcError } from "../../../protocol/rpc/errors";
import { BATCH_PROBE, decodeProbe, encodeProbe, MAX_PROBED_BYTES, type ProbedCall } from "../abi/batchProbe";
import { namedError, revertError } from "../abi/reverts";
import type { Receipt } from "../abi/receipts";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";

export interface SimulationOptions {
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  /** The minimum block for reads. */
  readonly minBlock: () => Promise<number>;
  readonly maxTransactionGas: bigint;
}

/** Result of a simulation: the gas of the write, or why it would fail. */
export type Simulated = { readonly gas: bigint } | { readonly refused: unknown };

export interface MeasuredCall {
  readonly calldata: string;
  readonly gas: bigint;
}

/** Gas that `tryMulticall` guarantees each call; a write that needs nearly as much goes alone. */
const CALL_GAS = 1_000_000n;
const BEFORE_LAST_CALL = (CALL_GAS * 64n) / 63n + 30_000n;
const TRANSACTION_GAS = 21_000n;
/** Overhead per call: the loop, copies, and the event of a failed call. */
const AROUND_CALL = 9_000n;
const BYTE_GAS = 40n;

export class Simulation {
  /** False once an endpoint turned out not to support state overrides; writes are then simulated individually. */
  #probeWorks = true;
  readonly #options: SimulationOptions;

  constructor(options: SimulationOptions) {
    this.#options = options;
  }

  /** The gas of one write in its own transaction, intrinsic cost included. A revert throws the named error. */
  async alone(calldata: string, from: Address, minBlock = this.#options.minBlock): Promise<bigint> {
    const { rpc, contractAddress } = this.#options;
    const call = { from, to: targetOf(calldata, contractAddress), data: calldata };
    try {
      const { values } = await rpc.callAt(await minBlock(), (block) => [
        { method: "eth_estimateGas", params: [call, block] },
      ]);
      return BigInt(values[0] as string);
    } catch (error) {
      throw ourPayerIsUnknown(error) ?? namedError(error);
    }
  }

  /**
   * Simulates several writes in sequence, each on the state left by the previous ones, with one `eth_call`. Fewer
   * results than writes when the node's gas limit was reached.
   */
  async together(calls: readonly string[], from: Address): Promise<readonly Simulated[]> {
    const probed = await this.inSequence(this.#options.contractAddress, calls, from);
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

  /**
   * The same for calls of any contract, without names for their errors. Undefined where the node does not support it.
   */
  async inSequence(
    target: Address,
    calls: readonly string[],
    from: Address,
  ): Promise<readonly ProbedCall[] | undefined> {
    return this.#probeWorks ? this.#probe(target, calls, from) : undefined;
  }

  /** The gas limit of a single write's transaction: its estimate plus a margin, capped at the protocol's maximum. */
  limitAlone(estimate: bigint): bigint {
    const { maxTransactionGas } = this.#options;
    if (estimate > maxTransactionGas) {
      throw new KeywrightError(
        "invalid_value",
        "This write needs more gas than one transaction may use; split it into several.",
      );
    }
    const limit = (estimate * 13n) / 10n + 20_000n;
    return limit < maxTransactionGas ? limit : maxTransactionGas;
  }

  /** The gas limit of a write that was simulated with others and is sent alone. */
  limitLeftAlone({ calldata, gas }: MeasuredCall): bigint {
    return this.limitAlone(TRANSACTION_GAS + gas + BYTE_GAS * BigInt(calldata.length / 2));
  }

  /** The gas limit of a batch: every call must have the gas that the contract guarantees it. */
  limitTogether(calls: readonly MeasuredCall[]): bigint {
    const each = calls.reduce(
      (sum, { calldata, gas }) => sum + (gas * 12n) / 10n + AROUND_CALL + BYTE_GAS * BigInt(calldata.length / 2 + 64),
      0n,
    );
    return TRANSACTION_GAS + each + BEFORE_LAST_CALL;
  }

  /** Whether a write may share a transaction. */
  fitsIntoBatch(calldata: string, gas: bigint): boolean {
    return calldata.length / 2 < MAX_PROBED_BYTES / 8 && (gas * 13n) / 10n < CALL_GAS;
  }

  async #probe(target: Address, calls: readonly string[], from: Address): Promise<readonly ProbedCall[] | undefined> {
    const { rpc, minBlock } = this.#options;
    const params = [{ from, to: from, data: encodeProbe(target, calls) }];
    const override = { [from]: { code: BATCH_PROBE } };
    try {
      const { values } = await rpc.callAt(
        await minBlock(),
        (block) => [{ method: "eth_call", params: [...params, block, override] }],
        { once: true },
      );
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

/** `NotAuthorized` is about the sender, which is a payer of this service: not the client's fault. */
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

/**
 * Why a call of a mined transaction failed, which receipts do not contain: repeats the call on the state after its
 * block, where the cause usually persists; else on the state before it.
 */
export async function reasonOf(rpc: RpcClient, call: object, { blockNumber }: Receipt): Promise<SubmissionFailure> {
  for (const block of [Number(blockNumber), Number(blockNumber) - 1]) {
    const error = await revertOf(rpc, call, block);
    if (error !== undefined) return { code: error.code, detail: error.detail, facts: { ...error.facts } };
  }
  return unknownReason;
}

export const unknownReason: SubmissionFailure = {
  code: "write_reverted",
  detail: `${ERRORS.write_reverted.title}; the node does not say why.`,
  facts: {},
};

async function revertOf(rpc: RpcClient, call: object, block: number): Promise<KeywrightError | undefined> {
  try {
    await rpc.call("eth_call", [call, `0x${block.toString(16)}`]);
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcError) || error.failure !== "reverted") return undefined;
    const named = revertError(error.data);
    return named.code === "internal_error" ? undefined : named;
  }
}
