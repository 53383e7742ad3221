/**
 * The logs of contracts in a block, queried by its hash and checked against the bloom in its header: an empty result
 * that contradicts the bloom is accepted only if all receipts of the block confirm it. However many contracts are asked
 * about, there are few queries.
 */
import { LRUCache } from "lru-cache";
import { MIB } from "../../../protocol/limits";
import type { RpcClient } from "../rpc/client";
import { unionOf, type BloomQuestion } from "./bloom";
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

interface RpcReceipt {
  readonly blockHash: string;
  readonly logsBloom: string;
  readonly logs: readonly ChainLog[];
}

/** Logs of one block by their contract's address, in lower case: only of those that have some. */
export type LogsByAddress = ReadonlyMap<string, readonly ChainLog[]>;

interface Answered {
  readonly found: LogsByAddress;
  /** Nothing is missing. */
  readonly isWhole: boolean;
  /** Some endpoint has answered about this block. */
  readonly isAnswered: boolean;
}

const MAX_DOUBTS = 1_024;
/**
 * An empty result that can be neither confirmed nor refuted is accepted once it has been in doubt for this time, or the
 * block is as old: a reader that is behind, at many such blocks, would fall further behind.
 */
const MISSING_ACCEPTED_AFTER_MS = 15_000;
const MAX_CHARS_KEPT = 32 * MIB;
/** What a log takes besides its data. */
const LOG_CHARS = 1_024;
/** In one query. */
const MAX_CONTRACTS = 500;

export class BlockLogs {
  readonly #rpc: RpcClient;
  /** Since when logs of a block (by hash) are missing. */
  readonly #doubts = new LRUCache<string, number>({ maxSize: MAX_DOUBTS, sizeCalculation: () => 1 });
  /** All logs of blocks (by hash) whose receipts were read. Searches of several depths come past the same blocks. */
  readonly #ofReceipts = new LRUCache<string, LogsByAddress>({
    maxSize: MAX_CHARS_KEPT,
    sizeCalculation: (logs) => LOG_CHARS + [...logs.values()].reduce((sum, those) => sum + charsOf(those), 0),
  });
  /** Contracts in one query: halved when endpoints refuse so many, and grows while they answer. */
  #most = MAX_CONTRACTS;

  constructor(rpc: RpcClient) {
    this.#rpc = rpc;
  }

  /** All logs of these contracts in a block, and some of others; undefined while no answer about one is reliable. */
  async of(block: Header, contracts: readonly BloomQuestion[]): Promise<LogsByAddress | undefined> {
    const asked = contracts.filter((contract) => contract.ask(block.logsBloom) !== "no");
    const [first] = asked;
    if (first === undefined) return new Map();
    const known = this.#ofReceipts.get(block.hash);
    if (known !== undefined) return known;
    const isPromised = first.ask(block.logsBloom) === "yes";
    const answers = await this.#ask(block, asked, isPromised);
    const found = new Map(answers.flatMap((answer) => [...answer.found]));
    if (answers.every(({ isWhole }) => isWhole)) return found;
    const all = await this.#inReceipts(block);
    if (all !== undefined) return all;
    const isSaid = answers.every(({ isAnswered }) => isAnswered);
    return isSaid && this.#isAcceptedMissing(block) ? found : undefined;
  }

  async #ask(block: Header, contracts: readonly BloomQuestion[], isPromised: boolean): Promise<readonly Answered[]> {
    const size = this.#most;
    const pieces = Array.from({ length: Math.ceil(contracts.length / size) }, (_, index) =>
      contracts.slice(index * size, (index + 1) * size),
    );
    const answers = await Promise.all(pieces.map((piece) => this.#query(block, piece, isPromised)));
    const refused = pieces.find((piece, index) => piece.length > 1 && answers[index]?.isAnswered === false);
    if (refused === undefined) this.#most = Math.min(MAX_CONTRACTS, size + 1);
    // A node that does not have the block refuses one contract, too.
    else if ((await this.#query(block, refused.slice(0, 1), false)).isAnswered)
      this.#most = Math.ceil(refused.length / 2);
    return answers;
  }

  /**
   * What an endpoint has found counts; what it has not found is asked of the next one, if the bloom promises it: a full
   * bloom does not.
   */
  async #query({ hash }: Header, contracts: readonly BloomQuestion[], isPromised: boolean): Promise<Answered> {
    const found = new Map<string, readonly ChainLog[]>();
    let isAnswered = false;
    const isCredible = (logs: readonly ChainLog[]): boolean => {
      if (!logs.every(({ blockHash }) => blockHash === hash)) return false;
      for (const [address, those] of byAddress(logs)) if (!found.has(address)) found.set(address, those);
      isAnswered = true;
      return !isPromised || contracts.every(({ address }) => found.has(address));
    };
    const addresses = contracts.map(({ address }) => address);
    const filter = { address: addresses.length === 1 ? addresses[0] : addresses, blockHash: hash };
    const accepted = await this.#rpc.firstAccepted<readonly ChainLog[]>("eth_getLogs", [filter], isCredible);
    return { found, isWhole: accepted !== undefined, isAnswered };
  }

  /** Taken from receipts whose blooms make up the header's bloom, so that none is missing. */
  async #inReceipts({ hash, logsBloom: bloom }: Header): Promise<LogsByAddress | undefined> {
    const isWhole = (receipts: readonly RpcReceipt[] | null): boolean =>
      receipts !== null &&
      receipts.every(({ blockHash }) => blockHash === hash) &&
      unionOf(receipts.map(({ logsBloom }) => logsBloom)) === bloom;
    const receipts = await this.#rpc.firstAccepted<readonly RpcReceipt[] | null>(
      "eth_getBlockReceipts",
      [hash],
      isWhole,
    );
    if (receipts === undefined || receipts === null) return undefined;
    this.#doubts.delete(hash);
    const logs = byAddress(receipts.flatMap((receipt) => receipt.logs));
    this.#ofReceipts.set(hash, logs);
    return logs;
  }

  #isAcceptedMissing({ hash, madeAtMs = Infinity }: Header): boolean {
    const doubted = this.#doubts.get(hash) ?? Date.now();
    this.#doubts.set(hash, doubted);
    if (Date.now() - Math.min(doubted, madeAtMs) < MISSING_ACCEPTED_AFTER_MS) return false;
    this.#doubts.delete(hash);
    return true;
  }
}

const byAddress = (logs: readonly ChainLog[]): LogsByAddress =>
  Map.groupBy(logs, ({ address }) => address.toLowerCase());

/** Of logs that are kept. */
export const charsOf = (logs: readonly ChainLog[]): number =>
  logs.reduce((sum, { data }) => sum + data.length + LOG_CHARS, 0);
