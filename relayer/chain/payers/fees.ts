/** What to offer for gas: twice the base fee and the usual tip; for a replacement an eighth more than before, rounded up, on both fields; never above the cap. */
import type { RpcClient } from "../rpc/client";

export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

export interface FeeOptions {
  readonly rpc: RpcClient;
  /** No fee per gas above this is ever offered, in wei. */
  readonly capWei: bigint;
  /** The tip where no endpoint names one, in wei. */
  readonly defaultTipWei: bigint;
}

const FRESH_FOR_MS = 1_000;

export class FeeOracle {
  #asked: { at: number; fees: Promise<Fees> } | undefined;

  constructor(private readonly options: FeeOptions) {}

  /** The going rate, at most the cap. */
  async now(): Promise<Fees> {
    const now = Date.now();
    if (this.#asked === undefined || now - this.#asked.at > FRESH_FOR_MS) {
      const fees = this.#ask();
      this.#asked = { at: now, fees };
      fees.catch(() => (this.#asked = undefined));
    }
    return this.#asked.fees;
  }

  /**
   * Fees every node accepts in place of `before`: an eighth more, the last step going to the cap itself. Undefined when the cap does not allow a step that
   * nodes accept. `overCap` is for giving a nonce up, once.
   */
  async toReplace(before: Fees, overCap = false): Promise<Fees | undefined> {
    const going = await this.now();
    const cap = overCap ? 2n * this.options.capWei : this.options.capWei;
    const maxFeePerGas = smaller(larger(going.maxFeePerGas, raised(before.maxFeePerGas)), cap);
    const maxPriorityFeePerGas = smaller(larger(going.maxPriorityFeePerGas, raised(before.maxPriorityFeePerGas)), maxFeePerGas);
    const isAccepted = maxFeePerGas >= leastRaised(before.maxFeePerGas) && maxPriorityFeePerGas >= leastRaised(before.maxPriorityFeePerGas);
    return isAccepted ? { maxFeePerGas, maxPriorityFeePerGas } : undefined;
  }

  async #ask(): Promise<Fees> {
    const { rpc, capWei } = this.options;
    const [block, tip] = await Promise.all([rpc.call<{ baseFeePerGas?: string }>("eth_getBlockByNumber", ["latest", false]), this.#tip()]);
    const base = BigInt(block.baseFeePerGas ?? "0x0");
    const maxPriorityFeePerGas = smaller(tip ?? (await this.#tipInGasPrice(base)), capWei);
    return { maxFeePerGas: smaller(2n * base + maxPriorityFeePerGas, capWei), maxPriorityFeePerGas };
  }

  /** Undefined where nodes do not have the method. */
  async #tip(): Promise<bigint | undefined> {
    const tip = await this.options.rpc.firstAccepted<string>("eth_maxPriorityFeePerGas", [], isQuantity);
    return tip === undefined ? undefined : BigInt(tip);
  }

  /** What a node advises to pay in all, less the base fee. */
  async #tipInGasPrice(base: bigint): Promise<bigint> {
    const price = await this.options.rpc.firstAccepted<string>("eth_gasPrice", [], isQuantity);
    return price === undefined || BigInt(price) <= base ? this.options.defaultTipWei : BigInt(price) - base;
  }
}

const isQuantity = (answer: unknown): boolean => typeof answer === "string" && /^0x[0-9a-fA-F]{1,64}$/.test(answer);

/** 12.5 % more, rounded up: nodes want 10 % or a little more than that. */
export const raised = (fee: bigint): bigint => (fee * 9n + 7n) / 8n + (fee === 0n ? 1n : 0n);
/** More than 10 % above: the least that nodes take as a replacement. */
const leastRaised = (fee: bigint): bigint => (fee * 11n) / 10n + 1n;

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
