/**
 * Reads blocks and the contract's logs from nodes that may be at different heights. Near the head, the logs of each
 * block are queried by hash (`BlockLogs`).
 */
import type { Address } from "../../../protocol/ids";
import { eventTopics } from "../abi/logs";
import type { RpcClient } from "../rpc/client";
import { quantityOf } from "../rpc/quantities";
import { BlockLogs, type Header } from "./blockLogs";
import { BloomQuestion } from "./bloom";
import type { ChainLog } from "./eventRows";

interface RpcHeader {
  readonly number: string;
  readonly hash: string;
  readonly parentHash: string;
  readonly logsBloom?: string;
  readonly timestamp?: string;
}

const MAX_BLOCKS_AT_ONCE = 2_000;

/** No endpoint returns the contract's logs in a block that it has. */
export class UnreadLogs extends Error {
  override readonly name = "UnreadLogs";
  constructor(refusal: unknown) {
    super("no endpoint returns the contract's logs in a block", { cause: refusal });
  }
}

export class BlockReader {
  readonly #bloom: BloomQuestion;
  readonly #logs: BlockLogs;
  /** Reduced when a node refuses a range of logs, doubled when it answers. */
  #span = MAX_BLOCKS_AT_ONCE;
  readonly #rpc: RpcClient;
  readonly #contract: Address;

  /** @param topics of which each log has one; none: of which nothing is known */
  constructor(rpc: RpcClient, contract: Address, topics: readonly string[] = eventTopics()) {
    this.#rpc = rpc;
    this.#contract = contract;
    this.#bloom = new BloomQuestion(contract, topics);
    this.#logs = new BlockLogs(rpc);
  }

  /** Number of old blocks per query. */
  get span(): number {
    return this.#span;
  }

  async head(): Promise<Header | undefined> {
    return headerOf(await this.#rpc.call<RpcHeader | null>("eth_getBlockByNumber", ["latest", false]));
  }

  /** The canonical block of a number; undefined when no endpoint has it (yet). */
  async block(number: number): Promise<Header | undefined> {
    const isThere = (answer: RpcHeader | null): boolean => Number(answer?.number) === number;
    return headerOf(
      (await this.#rpc.firstAccepted<RpcHeader | null>("eth_getBlockByNumber", [quantityOf(number), false], isThere)) ??
        null,
    );
  }

  /** Consecutive linked blocks starting at `from`, as far as they can be read. */
  async chainOf(from: number, to: number): Promise<readonly Header[]> {
    const blocks = await Promise.all(Array.from({ length: to - from + 1 }, (_, index) => this.block(from + index)));
    const linked: Header[] = [];
    for (const block of blocks) {
      const before = linked.at(-1);
      if (block === undefined || (before !== undefined && block.parentHash !== before.hash)) break;
      linked.push(block);
    }
    return linked;
  }

  /** All logs of the contract in a block; undefined while no endpoint's response is reliable. */
  async logsOf(block: Header): Promise<readonly ChainLog[] | undefined> {
    const logs = await this.#logs.of(block, [this.#bloom]);
    return logs?.unread.length === 0 ? (logs.found.get(this.#bloom.address) ?? []) : undefined;
  }

  /**
   * Logs of final blocks; undefined when the range must be split. A single block is asked for in one round over the
   * endpoints, and with `once` a range is, too: block after block may have more logs than they return.
   * @throws UnreadLogs as `#logsOfRefused`.
   */
  async logsOfRange(from: number, to: number, { once = false } = {}): Promise<readonly ChainLog[] | undefined> {
    try {
      const filter = { address: this.#contract, fromBlock: quantityOf(from), toBlock: quantityOf(to) };
      const call = { method: "eth_getLogs", params: [filter] };
      const [logs] = await this.#rpc.callBelow(to, [call], { once: once || from === to });
      if (to - from + 1 >= this.#span) this.#span = Math.min(MAX_BLOCKS_AT_ONCE, this.#span * 2);
      return logs as readonly ChainLog[];
    } catch (error) {
      if (from === to) return this.#logsOfRefused(to, error);
      this.#span = Math.max(1, Math.floor((to - from + 1) / 4));
      return undefined;
    }
  }

  /**
   * Of a final block about which no endpoint has answered: it may have more logs than they return, and receipts have no
   * such limit. Only they show that it has none: so says an endpoint without the block, too.
   * @throws UnreadLogs when this contract's logs in it have been refused for long, though an endpoint has the block;
   *   until then the refusal itself.
   */
  async #logsOfRefused(number: number, refusal: unknown): Promise<readonly ChainLog[]> {
    const block = await this.block(number);
    if (block === undefined) throw refusal;
    const whole = await this.#logs.ofReceipts(block);
    if (whole !== undefined) return whole.get(this.#bloom.address) ?? [];
    const logs = await this.#logs.of(block, [this.#bloom]);
    if (logs !== undefined && logs.unread.length > 0) throw new UnreadLogs(refusal);
    const found = logs?.found.get(this.#bloom.address);
    if (found === undefined) throw refusal;
    return found;
  }
}

function headerOf(answer: RpcHeader | null): Header | undefined {
  if (answer === null) return undefined;
  const { number, hash, parentHash, logsBloom, timestamp } = answer;
  const madeAtMs = timestamp === undefined ? {} : { madeAtMs: Number(timestamp) * 1_000 };
  return { number: Number(number), hash, parentHash, logsBloom, ...madeAtMs };
}
