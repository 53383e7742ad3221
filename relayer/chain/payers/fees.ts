/**
 * Gas fees: twice the base fee plus the usual tip; a replacement raises both fields by an eighth, rounded up; never
 * above the cap.
 */
import { KeywrightError } from "../../../protocol/errors";
import type { RpcClient } from "../rpc/client";

export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

export interface FeeOptions {
  readonly rpc: RpcClient;
  /** The highest fee per gas offered, in wei; twice that to abandon a nonce. */
  readonly capWei: bigint;
  /** The tip when no endpoint suggests one, in wei. */
  readonly defaultTipWei: bigint;
}

const FRESH_FOR_MS = 1_000;

export class FeeOracle {
  #asked: { at: number; fees: Promise<Fees> } | undefined;
  readonly #options: FeeOptions;

  constructor(options: FeeOptions) {
    this.#options = options;
  }

  /** Current fees, capped. */
  async now(): Promise<Fees> {
    const now = performance.now();
    if (this.#asked === undefined || now - this.#asked.at > FRESH_FOR_MS) {
      const fees = this.#ask();
      this.#asked = { at: now, fees };
      fees.catch(() => (this.#asked = undefined));
    }
    return this.#asked.fees;
  }

  /**
   * Fees with which every node accepts a replacement of `before`: an eighth more, or the cap as the last step.
   * Undefined when the cap does not allow an acceptable step. `overCap` doubles the cap, to abandon a nonce.
   */
  async toReplace(before: Fees, overCap = false): Promise<Fees | undefined> {
    const going = await this.now();
    const cap = overCap ? 2n * this.#options.capWei : this.#options.capWei;
    const maxFeePerGas = smaller(larger(going.maxFeePerGas, raised(before.maxFeePerGas)), cap);
    const maxPriorityFeePerGas = smaller(
      larger(going.maxPriorityFeePerGas, raised(before.maxPriorityFeePerGas)),
      maxFeePerGas,
    );
    const isAccepted =
      maxFeePerGas >= leastRaised(before.maxFeePerGas) &&
      maxPriorityFeePerGas >= leastRaised(before.maxPriorityFeePerGas);
    return isAccepted ? { maxFeePerGas, maxPriorityFeePerGas } : undefined;
  }

  async #ask(): Promise<Fees> {
    const { rpc, capWei } = this.#options;
    const [block, tip] = await Promise.all([
      rpc.call<{ baseFeePerGas?: string } | null>("eth_getBlockByNumber", ["latest", false]),
      this.#tip(),
    ]);
    const baseFee = block === null ? undefined : (block.baseFeePerGas ?? "0x0");
    if (!isQuantity(baseFee)) throw noFees();
    const base = BigInt(baseFee);
    const maxPriorityFeePerGas = smaller(tip ?? (await this.#tipInGasPrice(base)), capWei);
    const maxFeePerGas = larger(smaller(2n * base + maxPriorityFeePerGas, capWei), 1n);
    return { maxFeePerGas, maxPriorityFeePerGas };
  }

  /** Undefined where nodes lack the method. */
  async #tip(): Promise<bigint | undefined> {
    const tip = await this.#options.rpc.firstAccepted<string>("eth_maxPriorityFeePerGas", [], isQuantity);
    return tip === undefined ? undefined : BigInt(tip);
  }

  /** The node's suggested gas price minus the base fee. */
  async #tipInGasPrice(base: bigint): Promise<bigint> {
    const price = await this.#options.rpc.firstAccepted<string>("eth_gasPrice", [], isQuantity);
    return price === undefined || BigInt(price) <= base ? this.#options.defaultTipWei : BigInt(price) - base;
  }
}

const isQuantity = (answer: unknown): answer is string =>
  typeof answer === "string" && /^0x[0-9a-fA-F]{1,64}$/.test(answer);

const noFees = (): KeywrightError =>
  new KeywrightError("chain_unavailable", "The chain's fees cannot be read at the moment.", undefined, {
    retryAfterSeconds: 2,
  });

/** 12.5 % more, rounded up: nodes require 10 % or slightly more. */
export const raised = (fee: bigint): bigint => (fee * 9n + 7n) / 8n + (fee === 0n ? 1n : 0n);
/** More than 10 % above: the minimum nodes accept as a replacement. */
const leastRaised = (fee: bigint): bigint => (fee * 11n) / 10n + 1n;

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
