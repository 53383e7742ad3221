/** Logs of any contracts on the account's chain, block by block, as those of our own near the head (`BlockLogs`). */
import { LRUCache } from "lru-cache";
import type { Address } from "../../../protocol/ids";
import { MIB } from "../../../protocol/limits";
import type { RpcClient } from "../rpc/client";
import { BlockLogs, charsOf, type Block, type FoundLogs, type Header } from "./blockLogs";
import { BlockReader } from "./blockReader";
import { BloomQuestion } from "./bloom";
import type { ChainLog } from "./eventRows";

const MAX_ADDRESSES = 20_000;
const MAX_CHARS_KEPT = 32 * MIB;

export interface LogSource {
  /** The newest block that an endpoint knows. */
  head(): Promise<Block | undefined>;
  /** The canonical block of a number; undefined when no endpoint has it. */
  block(number: number): Promise<Header | undefined>;
  /** Logs of these contracts (in lower case) in a block; undefined while no endpoint's answer about one is reliable. */
  logsOf(block: Header, addresses: readonly string[]): Promise<FoundLogs | undefined>;
}

export class ChainLogs implements LogSource {
  // By size, so that room for all of them is not taken before there are any.
  readonly #questions = new LRUCache<string, BloomQuestion>({ maxSize: MAX_ADDRESSES, sizeCalculation: () => 1 });
  /** By block and address: searches of several depths come past the same blocks, one after the other. */
  readonly #kept = new LRUCache<string, readonly ChainLog[]>({ maxSize: MAX_CHARS_KEPT, sizeCalculation: charsOf });
  readonly #logs: BlockLogs;
  readonly #blocks: BlockReader;

  constructor(rpc: RpcClient, contract: Address) {
    this.#logs = new BlockLogs(rpc);
    // Asked for blocks alone, so it needs no topics.
    this.#blocks = new BlockReader(rpc, contract, []);
  }

  head(): Promise<Header | undefined> {
    return this.#blocks.head();
  }

  block(number: number): Promise<Header | undefined> {
    return this.#blocks.block(number);
  }

  async logsOf(block: Header, addresses: readonly string[]): Promise<FoundLogs | undefined> {
    const logs = new Map<string, readonly ChainLog[]>();
    const nameOf = (address: string): string => `${block.hash} ${address}`;
    for (const address of addresses) {
      const kept = this.#kept.get(nameOf(address));
      if (kept !== undefined) logs.set(address, kept);
    }
    const rest = addresses.filter((address) => !logs.has(address));
    const answer = await this.#logs.of(
      block,
      rest.map((address) => this.#question(address)),
    );
    if (answer === undefined) return undefined;
    for (const address of rest) {
      const those = answer.found.get(address);
      // Only what is there is kept: an empty list may turn out to be wrong.
      if (those === undefined) continue;
      this.#kept.set(nameOf(address), those);
      logs.set(address, those);
    }
    return { found: logs, unread: answer.unread };
  }

  #question(address: string): BloomQuestion {
    const question = this.#questions.get(address) ?? new BloomQuestion(address, []);
    this.#questions.set(address, question);
    return question;
  }
}
