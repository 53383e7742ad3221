/**
 * The logs of contracts in a block, queried by its hash and checked against the bloom in its header: an empty result
 * that contradicts the bloom is accepted only if all receipts of the block confirm it. However many contracts are asked
 * about, there are few queries.
 */
import { LRUCache } from "lru-cache";
import { MIB } from "../../../protocol/limits";
import type { RpcClient } from "../rpc/client";
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

interface RpcReceipt {
  readonly blockHash: string;
  readonly logsBloom: string;
  readonly logs: readonly ChainLog[];
}

/** Logs of one block by their contract's address, in lower case: only of those that have some. */
export type LogsByAddress = ReadonlyMap<string, readonly ChainLog[]>;

export interface FoundLogs {
  readonly found: LogsByAddress;
  /** Contracts (in lower case) about which no endpoint answers, though one has the block: they may have logs. */
  readonly unread: readonly string[];
}

interface Answered {
  readonly asked: readonly string[];
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
/** So long each question about a contract alone goes unanswered before it is given up: it costs its triggers more. */
const UNREAD_AFTER_MS = 60_000;
/**
 * A reader that is so far behind would fall further behind, at block after block with such a contract. More than the
 * age of a block with the most confirmations on a slow chain.
 */
const FAR_BEHIND_MS = 30 * UNREAD_AFTER_MS;
const UNREAD_WHEN_BEHIND_MS = 2_000;
const MAX_CHARS_KEPT = 32 * MIB;
/** What a log takes besides its data. */
const LOG_CHARS = 1_024;
/** In one query. */
const MAX_CONTRACTS = 500;
/** Has no logs in any block, so that whoever has the block can say so. */
const NOBODY = new BloomQuestion(`0x${"0".repeat(40)}`, []);

export class BlockLogs {
  readonly #rpc: RpcClient;
  /** Since when logs of a block (by hash) are missing, or those of a contract in it are unread. */
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

  /**
   * All logs of these contracts in a block, and some of others; undefined while no answer about one is reliable. One
   * that has been unread for long is named: its logs may be more than any endpoint returns.
   */
  async of(block: Header, contracts: readonly BloomQuestion[]): Promise<FoundLogs | undefined> {
    const asked = contracts.filter((contract) => contract.ask(block.logsBloom) !== "no");
    const [first] = asked;
    if (first === undefined) return whole(new Map());
    const known = this.#ofReceipts.get(block.hash);
    if (known !== undefined) return whole(known);
    const isPromised = first.ask(block.logsBloom) === "yes";
    const answers = await this.#ask(block, asked, isPromised);
    const found = new Map(answers?.flatMap((answer) => [...answer.found]));
    if (answers?.every(({ isWhole }) => isWhole) === true) return whole(found);
    const all = await this.#inReceipts(block);
    if (all !== undefined) return whole(all);
    if (answers === undefined) {
      // Nobody could be asked about them, so none was refused.
      this.#isGivenUp(block, asked, new Set());
      return undefined;
    }
    const unread = answers.filter(({ isAnswered }) => !isAnswered).flatMap((answer) => answer.asked);
    if (!this.#isGivenUp(block, asked, new Set(unread))) return undefined;
    const isAllSaid = answers.every(({ isWhole, isAnswered }) => isWhole || !isAnswered);
    return isAllSaid || this.#isAcceptedMissing(block) ? { found, unread } : undefined;
  }

  /** All logs of a block, from its receipts; undefined where no endpoint has them all. */
  async ofReceipts(block: Header): Promise<LogsByAddress | undefined> {
    return this.#ofReceipts.get(block.hash) ?? this.#inReceipts(block);
  }

  /** What is refused is asked again in halves, down to single contracts; undefined where nobody has the block. */
  async #ask(
    block: Header,
    contracts: readonly BloomQuestion[],
    isPromised: boolean,
  ): Promise<readonly Answered[] | undefined> {
    const size = this.#most;
    const pieces = Array.from({ length: Math.ceil(contracts.length / size) }, (_, index) =>
      contracts.slice(index * size, (index + 1) * size),
    );
    const first = await Promise.all(pieces.map((piece) => this.#query(block, piece, isPromised)));
    if (first.every(({ isAnswered }) => isAnswered)) {
      this.#most = Math.min(MAX_CONTRACTS, size + 1);
      return first;
    }
    const isThere =
      first.some(({ isAnswered }) => isAnswered) || (await this.#query(block, [NOBODY], false)).isAnswered;
    if (!isThere) return undefined;
    const answers: Answered[] = [];
    for (const [index, answer] of first.entries())
      answers.push(
        ...(answer.isAnswered ? [answer] : await this.#inHalves(block, pieces[index] ?? [], isPromised, answer)),
      );
    const taken = Math.max(0, ...answers.map(({ isAnswered, asked }) => (isAnswered ? asked.length : 0)));
    // A contract that is refused alone says nothing of how many are taken.
    if (taken > 1 || answers.every(({ isAnswered }) => isAnswered)) this.#most = taken;
    return answers;
  }

  /** One after the other: an answer that is too large fails all that are sent with its question. */
  async #inHalves(
    block: Header,
    contracts: readonly BloomQuestion[],
    isPromised: boolean,
    refused: Answered,
  ): Promise<readonly Answered[]> {
    if (contracts.length === 1) return [refused];
    const middle = Math.ceil(contracts.length / 2);
    const answers: Answered[] = [];
    for (const half of [contracts.slice(0, middle), contracts.slice(middle)]) {
      const answer = await this.#query(block, half, isPromised);
      answers.push(...(answer.isAnswered ? [answer] : await this.#inHalves(block, half, isPromised, answer)));
    }
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
    return { asked: addresses, found, isWhole: accepted !== undefined, isAnswered };
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

  /** One that is answered once is in doubt anew the next time. */
  #isGivenUp(
    { hash, madeAtMs = Infinity }: Header,
    asked: readonly BloomQuestion[],
    unread: ReadonlySet<string>,
  ): boolean {
    const now = Date.now();
    const patienceMs = now - madeAtMs > FAR_BEHIND_MS ? UNREAD_WHEN_BEHIND_MS : UNREAD_AFTER_MS;
    let isGivenUp = true;
    for (const { address } of asked) {
      const name = `${hash} ${address}`;
      const since = this.#doubts.get(name) ?? now;
      if (!unread.has(address)) this.#doubts.delete(name);
      else {
        this.#doubts.set(name, since);
        isGivenUp &&= now - since >= patienceMs;
      }
    }
    return isGivenUp;
  }

  #isAcceptedMissing({ hash, madeAtMs = Infinity }: Header): boolean {
    const doubted = this.#doubts.get(hash) ?? Date.now();
    this.#doubts.set(hash, doubted);
    if (Date.now() - Math.min(doubted, madeAtMs) < MISSING_ACCEPTED_AFTER_MS) return false;
    this.#doubts.delete(hash);
    return true;
  }
}

const whole = (found: LogsByAddress): FoundLogs => ({ found, unread: [] });

const byAddress = (logs: readonly ChainLog[]): LogsByAddress =>
  Map.groupBy(logs, ({ address }) => address.toLowerCase());

/** Of logs that are kept. */
export const charsOf = (logs: readonly ChainLog[]): number =>
  logs.reduce((sum, { data }) => sum + data.length + LOG_CHARS, 0);
