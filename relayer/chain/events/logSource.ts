/** Logs of any contract on the account's chain, block by block, as those of our own near the head (`BlockReader`). */
import { LRUCache } from "lru-cache";
import type { Address } from "../../../protocol/ids";
import { MIB } from "../../../protocol/limits";
import type { RpcClient } from "../rpc/client";
import { BlockReader, type Block, type Header } from "./blockReader";
import type { ChainLog } from "./eventRows";

const MAX_ADDRESSES = 5_000;
const MAX_CHARS_KEPT = 32 * MIB;
/** What a log takes besides its data. */
const LOG_CHARS = 1_024;

export interface LogSource {
  /** The newest block that an endpoint knows. */
  head(): Promise<Block | undefined>;
  /** The canonical block of a number; undefined when no endpoint has it. */
  block(number: number): Promise<Header | undefined>;
  /** The contract's logs in a block; undefined while no endpoint's answer is reliable. */
  logsOf(block: Header, address: Address): Promise<readonly ChainLog[] | undefined>;
}

export class ChainLogs implements LogSource {
  // By size, so that room for all of them is not taken before there are any.
  readonly #readers = new LRUCache<Address, BlockReader>({ maxSize: MAX_ADDRESSES, sizeCalculation: () => 1 });
  /** By block and address: searches of several depths come past the same blocks, one after the other. */
  readonly #logs = new LRUCache<string, readonly ChainLog[]>({
    maxSize: MAX_CHARS_KEPT,
    sizeCalculation: (logs) => logs.reduce((sum, { data }) => sum + data.length + LOG_CHARS, 0),
  });
  readonly #blocks: BlockReader;
  readonly #rpc: RpcClient;

  constructor(rpc: RpcClient, contract: Address) {
    this.#rpc = rpc;
    // Asked for blocks alone, so it needs no topics.
    this.#blocks = new BlockReader(rpc, contract, []);
  }

  head(): Promise<Header | undefined> {
    return this.#blocks.head();
  }

  block(number: number): Promise<Header | undefined> {
    return this.#blocks.block(number);
  }

  async logsOf(block: Header, address: Address): Promise<readonly ChainLog[] | undefined> {
    const name = `${block.hash} ${address}`;
    const logs = this.#logs.get(name) ?? (await this.#read(block, address));
    // An empty list may turn out to be wrong.
    if (logs !== undefined && logs.length > 0) this.#logs.set(name, logs);
    return logs;
  }

  #read(block: Header, address: Address): Promise<readonly ChainLog[] | undefined> {
    const reader = this.#readers.get(address) ?? new BlockReader(this.#rpc, address, []);
    this.#readers.set(address, reader);
    return reader.logsOf(block);
  }
}
