/** What to offer for gas: twice the base fee and the usual tip; for a replacement an eighth more than before, rounded up, on both fields. */
import type { RpcClient } from "../rpc/client";

export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

const FRESH_FOR_MS = 1_000;

export class FeeOracle {
  #asked: { at: number; fees: Promise<Fees> } | undefined;

  constructor(
    private readonly rpc: RpcClient,
    private readonly capWei: bigint,
  ) {}

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

  /** Fees every node accepts in place of `before`; undefined when the cap does not allow them. `overCap` is for giving a nonce up, once. */
  async toReplace(before: Fees, overCap = false): Promise<Fees | undefined> {
    const going = await this.now();
    const maxFeePerGas = larger(going.maxFeePerGas, raised(before.maxFeePerGas));
    const maxPriorityFeePerGas = larger(going.maxPriorityFeePerGas, raised(before.maxPriorityFeePerGas));
    if (maxFeePerGas > (overCap ? 2n * this.capWei : this.capWei)) return undefined;
    return { maxFeePerGas, maxPriorityFeePerGas: smaller(maxPriorityFeePerGas, maxFeePerGas) };
  }

  async #ask(): Promise<Fees> {
    const [block, tip] = await this.rpc.callTogether([
      { method: "eth_getBlockByNumber", params: ["latest", false] },
      { method: "eth_maxPriorityFeePerGas", params: [] },
    ]);
    const base = BigInt((block as { baseFeePerGas?: string }).baseFeePerGas ?? "0x0");
    const maxPriorityFeePerGas = smaller(BigInt(tip as string), this.capWei);
    return { maxFeePerGas: smaller(2n * base + maxPriorityFeePerGas, this.capWei), maxPriorityFeePerGas };
  }
}

/** 12.5 % more, rounded up: nodes want 10 % or a little more than that. */
export const raised = (fee: bigint): bigint => (fee * 9n + 7n) / 8n + (fee === 0n ? 1n : 0n);

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
