/**
 * Reads blocks and the contract's logs from nodes that may be at different heights. Near the head, the logs of each
 * block are queried by hash and checked against the bloom in its header: an empty result that contradicts the bloom is
 * accepted only if all receipts of the block confirm it.
 */
import { LRUCache } from "lru-cache";
import type { Address } from "../../../protocol/ids";
import { eventTopics } from "../abi/logs";
import type { RpcClient } from "../rpc/client";
import { quantityOf } from "../rpc/quantities";
import { BloomQuestion, unionOf } from "./bloom";
import type { ChainLog } from "./eventRows";

export interface Block {
  readonly number: number;
  readonly hash: string;
}

export interface Header extends Block {
  readonly parentHash: string;
  readonly logsBloom: string | undefined;
  /** When it was made, where the endpoint says so. */
  readonly madeAtMs?: number;
}

interface RpcHeader {
  readonly number: string;
  readonly hash: string;
  readonly parentHash: string;
  readonly logsBloom?: string;
  readonly timestamp?: string;
}

interface RpcReceipt {
  readonly blockHash: string;
  readonly logsBloom: string;
  readonly logs: readonly ChainLog[];
}

const MAX_BLOCKS_AT_ONCE = 2_000;
const MAX_DOUBTS = 1_024;
/**
 * An empty result that can be neither confirmed nor refuted is accepted once it has been in doubt for this time, or the
 * block is as old: a reader that is behind, at many such blocks, would fall further behind.
 */
const MISSING_ACCEPTED_AFTER_MS = 15_000;

export class BlockReader {
  readonly #bloom: BloomQuestion;
  /** Since when the logs of a block (by hash) are missing. */
  readonly #doubts = new LRUCache<string, number>({ maxSize: MAX_DOUBTS, sizeCalculation: () => 1 });
  /** Reduced when a node refuses a range of logs, doubled when it answers. */
  #span = MAX_BLOCKS_AT_ONCE;
  readonly #rpc: RpcClient;
  readonly #contract: Address;

  /** @param topics of which each log has one; none: of which nothing is known */
  constructor(rpc: RpcClient, contract: Address, topics: readonly string[] = eventTopics()) {
    this.#rpc = rpc;
    this.#contract = contract;
    this.#bloom = new BloomQuestion(contract, topics);
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
    const promised = this.#bloom.ask(block.logsBloom);
    if (promised === "no") return [];
    const isOfBlock = (logs: readonly ChainLog[]): boolean => logs.every(({ blockHash }) => blockHash === block.hash);
    let isSaidEmpty = false;
    const isCredible = (logs: readonly ChainLog[]): boolean => {
      isSaidEmpty ||= logs.length === 0;
      return isOfBlock(logs) && (promised === "unknown" || logs.length > 0);
    };
    const filter = { address: this.#contract, blockHash: block.hash };
    const logs = await this.#rpc.firstAccepted<readonly ChainLog[]>("eth_getLogs", [filter], isCredible);
    return logs ?? this.#logsInReceipts(block, isSaidEmpty);
  }

  /** Logs of final blocks; undefined when the range must be split. */
  async logsOfRange(from: number, to: number): Promise<readonly ChainLog[] | undefined> {
    try {
      const filter = { address: this.#contract, fromBlock: quantityOf(from), toBlock: quantityOf(to) };
      const [logs] = await this.#rpc.callBelow(to, [{ method: "eth_getLogs", params: [filter] }]);
      if (to - from + 1 >= this.#span) this.#span = Math.min(MAX_BLOCKS_AT_ONCE, this.#span * 2);
      return logs as readonly ChainLog[];
    } catch (error) {
      if (this.#span === 1) throw error;
      this.#span = Math.max(1, Math.floor(this.#span / 4));
      return undefined;
    }
  }

  /** Taken from receipts whose blooms make up the header's bloom, so that none is missing. */
  async #logsInReceipts(block: Header, isSaidEmpty: boolean): Promise<readonly ChainLog[] | undefined> {
    const isWhole = (receipts: readonly RpcReceipt[] | null): boolean =>
      receipts !== null &&
      receipts.every(({ blockHash }) => blockHash === block.hash) &&
      unionOf(receipts.map(({ logsBloom }) => logsBloom)) === block.logsBloom;
    const receipts = await this.#rpc.firstAccepted<readonly RpcReceipt[] | null>(
      "eth_getBlockReceipts",
      [block.hash],
      isWhole,
    );
    if (receipts === undefined || receipts === null) return this.#emptyOnceWaited(block, isSaidEmpty);
    this.#doubts.delete(block.hash);
    return receipts.flatMap(({ logs }) =>
      logs.filter(({ address }) => address.toLowerCase() === this.#contract.toLowerCase()),
    );
  }

  #emptyOnceWaited({ hash, madeAtMs = Infinity }: Header, isSaidEmpty: boolean): readonly ChainLog[] | undefined {
    if (!isSaidEmpty) return undefined;
    const doubted = this.#doubts.get(hash) ?? Date.now();
    this.#doubts.set(hash, doubted);
    if (Date.now() - Math.min(doubted, madeAtMs) < MISSING_ACCEPTED_AFTER_MS) return undefined;
    this.#doubts.delete(hash);
    return [];
  }
}

function headerOf(answer: RpcHeader | null): Header | undefined {
  if (answer === null) return undefined;
  const { number, hash, parentHash, logsBloom, timestamp } = answer;
  const madeAtMs = timestamp === undefined ? {} : { madeAtMs: Number(timestamp) * 1_000 };
  return { number: Number(number), hash, parentHash, logsBloom, ...madeAtMs };
}
