/** Reads single logs of the account's chain and of those configured besides, each with this keyholder's own quorum. */
import { KeywrightError } from "../../protocol/errors";
import type { EventChains } from "../../protocol/eventChains";
import { topicFilter, type EventSettings } from "../../protocol/trigger";
import { agreed, type AtBlock } from "./quorum";
import { Absent, RpcEndpoint, RpcFailure, type LogBlock, type LogFilter } from "./rpc";

export interface EventLogsOptions {
  /** The account's chain. */
  readonly chainId: bigint;
  readonly rpcUrls: readonly string[];
  readonly others: EventChains;
  readonly quorum: number;
  readonly timeoutMs: number;
}

/** Where a log is, as a relayer says. */
export interface LogPlace extends LogBlock {
  /** Among the logs of the transaction that fit the filter. */
  readonly place: number;
}

export interface ChainLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly logIndex: number;
  /** Of its block, in Unix seconds. */
  readonly blockSeconds: number;
}

type Filter = LogFilter & { readonly confirmations: number; readonly topics: EventSettings["topics"] };

export class EventLogs {
  readonly #chains: ReadonlyMap<number, readonly RpcEndpoint[]>;
  readonly #quorum: number;
  readonly #timeoutMs: number;
  readonly #checked = new WeakMap<RpcEndpoint, Promise<bigint>>();

  constructor({ chainId, rpcUrls, others, quorum, timeoutMs }: EventLogsOptions) {
    this.#quorum = quorum;
    this.#timeoutMs = timeoutMs;
    this.#chains = new Map(
      [[Number(chainId), rpcUrls] as const, ...others].map(([id, urls]) => [
        id,
        urls.map((url) => new RpcEndpoint(url, this.#timeoutMs)),
      ]),
    );
  }

  /** @throws KeywrightError `invalid_value` for a chain that is not configured. */
  requireChain(chainId: number): void {
    if (this.#chains.has(chainId)) return;
    const known = [...this.#chains.keys()].join(", ");
    throw new KeywrightError("invalid_value", `event.chain_id: this service reads the chains ${known}.`);
  }

  /**
   * The log that the transaction has at this place among its logs that fit the filter, in a block that is canonical and
   * has the confirmations that the filter asks for.
   * @throws KeywrightError `log_not_found` when so many endpoints do not have it that no quorum can;
   * `chain_unavailable` when too few have answered.
   */
  async logAt(chainId: number, filter: Filter, at: LogPlace): Promise<ChainLog> {
    const endpoints = this.#chains.get(chainId) ?? [];
    const without = new Set<RpcEndpoint>();
    const ask = async (endpoint: RpcEndpoint): Promise<AtBlock & { log: ChainLog }> => {
      await this.#requireId(endpoint, chainId);
      const log = await logOf(endpoint, filter, at).catch((error: unknown) => {
        if (error instanceof Absent) without.add(endpoint);
        throw error;
      });
      return { blockNumber: BigInt(at.blockNumber), log };
    };
    const { log } = await agreed(endpoints, this.#quorum, ask).catch((error: unknown) => {
      if (endpoints.length - without.size < this.#quorum) noSuchLog(error);
      throw error;
    });
    return log;
  }

  /** Another chain's logs would be believed. Asked once. */
  async #requireId(endpoint: RpcEndpoint, chainId: number): Promise<void> {
    const asked = this.#checked.get(endpoint) ?? endpoint.chainId();
    this.#checked.set(endpoint, asked);
    const actual = await asked.catch((error: unknown) => {
      this.#checked.delete(endpoint);
      throw error;
    });
    if (actual !== BigInt(chainId)) throw new RpcFailure("the endpoint is of another chain");
  }

  async close(): Promise<void> {
    await Promise.all([...this.#chains.values()].flat().map((endpoint) => endpoint.close()));
  }
}

async function logOf(endpoint: RpcEndpoint, filter: Filter, at: LogPlace): Promise<ChainLog> {
  const { blockNumber } = at;
  const [blockHash, transactionHash] = [at.blockHash.toLowerCase(), at.transactionHash.toLowerCase()];
  const block = { blockNumber, blockHash, transactionHash };
  const { logs, seconds } = await endpoint.logsOf(filter, block, filter.confirmations);
  const isWanted = topicFilter(filter.topics);
  const found = logs.filter(
    (log) =>
      log.blockHash.toLowerCase() === blockHash &&
      log.address.toLowerCase() === filter.address.toLowerCase() &&
      log.transactionHash.toLowerCase() === transactionHash &&
      isWanted(log.topics.map((topic) => topic.toLowerCase())),
  );
  const log = found.sort((one, other) => Number(one.logIndex) - Number(other.logIndex))[at.place];
  if (log === undefined) throw new Absent("the transaction has no such log");
  const { address, topics, data, logIndex } = log;
  return { address, topics, data, logIndex: Number(logIndex), blockSeconds: seconds };
}

function noSuchLog(error: unknown): never {
  const detail = "Too few endpoints have this log in a canonical block with the trigger's confirmations.";
  throw new KeywrightError("log_not_found", detail, {}, { cause: error, retryAfterSeconds: 2 });
}
