/**
 * The JSON-RPC calls of the keyholder: contract calls, the chain id, the base fee. Answers that are not hex are errors.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Hash32 } from "../../protocol/ids";
import { Endpoint } from "../../protocol/rpc/endpoint";
import { RpcError } from "../../protocol/rpc/errors";

/**
 * The endpoint gave no usable answer: unreachable, too slow, too large, refusing, or not JSON-RPC. The message never
 * contains the endpoint's URL, which may carry an API key.
 */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";
}

/** The endpoint has answered: what was asked for is not on the chain as it sees it. */
export class Absent extends RpcFailure {}

const MAX_ANSWER_BYTES = 1 << 20;
const KEPT_RECEIPTS = 4;

const quantity = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/);
const blockSchema = z.object({
  number: quantity,
  hash: z.string().regex(/^0x[0-9a-f]{64}$/),
  timestamp: quantity,
  baseFeePerGas: quantity.optional(),
});

const logsSchema = z.array(
  z.object({
    address: z.string(),
    topics: z.array(z.string()),
    data: z.string(),
    blockNumber: quantity,
    removed: z.boolean().optional(),
  }),
);
export type Log = z.infer<typeof logsSchema>[number];
const logSchema = z.object({
  address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  topics: z.array(z.string().regex(/^0x[0-9a-fA-F]{64}$/)).max(4),
  data: z.string().regex(/^0x([0-9a-fA-F]{2})*$/),
  transactionHash: z.string(),
  blockHash: z.string(),
  logIndex: quantity,
});
export type RpcLog = z.infer<typeof logSchema>;
const receiptSchema = z.object({ blockHash: z.string(), logs: z.array(logSchema) }).nullable();
export interface LogFilter {
  readonly address: string;
  readonly topics: readonly (string | null | readonly string[])[];
}

/** Where a log is said to be. */
export interface LogBlock {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
}

/** What names a block and its time, in Unix seconds. */
export interface Dated {
  readonly blockNumber: bigint;
  readonly blockTimestamp: bigint;
}

/** `latest`, or a block number. */
export type BlockTag = "latest" | bigint;

export class RpcEndpoint {
  readonly #endpoint: Endpoint;
  /** Logs by block and transaction: the same for ever. */
  readonly #receipts = new LRUCache<string, Promise<readonly RpcLog[]>>({ max: KEPT_RECEIPTS });

  constructor(url: string, timeoutMs: number) {
    // No batching: one slow answer would delay the others.
    this.#endpoint = new Endpoint(url, { timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES, maxBatch: 1 });
  }

  /** Return data of a call, as hex. Throws RpcFailure. */
  call(to: string, data: string, block: BlockTag): Promise<string> {
    return this.#ask("eth_call", [{ to, data }, tagOf(block)]);
  }

  async chainId(): Promise<bigint> {
    return BigInt(await this.#ask("eth_chainId", []));
  }

  /** A block with its base fee; the fee is 0 on chains without one. Throws RpcFailure. */
  async baseFee(block: BlockTag): Promise<Dated & { readonly wei: bigint }> {
    const read = await this.#block(block);
    return { ...datedOf(read), wei: BigInt(read.baseFeePerGas ?? 0) };
  }

  /** Hash of the block with this number and time (Unix seconds). Throws RpcFailure, also without such a block. */
  async hashOf(block: bigint, timestamp: bigint): Promise<{ blockNumber: bigint; hash: Hash32 }> {
    const { number, hash, timestamp: actual } = await this.#block(block);
    if (BigInt(number) !== block || BigInt(actual) !== timestamp)
      throw new Absent("the endpoint has another block of this number");
    return { blockNumber: block, hash: hash as Hash32 };
  }

  /** The block, by the node's number, which on some chains is not what contracts see. Throws RpcFailure. */
  async dated(block: BlockTag): Promise<Dated> {
    return datedOf(await this.#block(block));
  }

  /** Throws RpcFailure. */
  async logs(
    address: string,
    topics: readonly (string | readonly string[])[],
    from: bigint,
    to: bigint,
  ): Promise<readonly Log[]> {
    const range = { address, topics, fromBlock: tagOf(from), toBlock: tagOf(to) };
    const parsed = logsSchema.safeParse(await this.#send("eth_getLogs", [range]));
    if (parsed.success) return parsed.data.filter(({ removed }) => removed !== true);
    throw new RpcFailure("the endpoint's answer to eth_getLogs is no list of logs");
  }

  /**
   * Logs of a transaction, those that fit the filter among them, and the Unix time of its block, which is canonical and
   * `depth` deep. Throws RpcFailure.
   */
  async logsOf(
    filter: LogFilter,
    at: LogBlock,
    depth: number,
  ): Promise<{ readonly logs: readonly RpcLog[]; readonly seconds: number }> {
    const block = BigInt(at.blockNumber);
    const [{ hash, timestamp }, { number: newest }] = await Promise.all([this.#block(block), this.#block("latest")]);
    if (hash !== at.blockHash) throw new Absent("the endpoint has another block of this number");
    if (BigInt(newest) - block + 1n < BigInt(depth)) throw new Absent("the block has too few confirmations");
    const logs = await this.#logsInReceipt(at).catch((error: unknown) => {
      if (error instanceof Absent) throw error;
      return this.#logsInBlock(filter, at);
    });
    return { logs, seconds: Number(timestamp) };
  }

  /** Other transactions of the block cannot make it too large to be read. Many firings may ask for one. */
  #logsInReceipt(at: LogBlock): Promise<readonly RpcLog[]> {
    const name = `${at.blockHash} ${at.transactionHash}`;
    const logs = this.#receipts.get(name) ?? this.#readReceipt(at);
    this.#receipts.set(name, logs);
    logs.catch(() => this.#receipts.delete(name));
    return logs;
  }

  async #readReceipt({ blockHash, transactionHash }: LogBlock): Promise<readonly RpcLog[]> {
    const answer = await this.#send("eth_getTransactionReceipt", [transactionHash]);
    const { success, data: receipt } = receiptSchema.safeParse(answer);
    if (!success) throw new RpcFailure("the endpoint's answer to eth_getTransactionReceipt is no receipt");
    // It may have no index of transactions, or not yet: its logs say whether it is in the block.
    if (receipt === null) throw new RpcFailure("the endpoint has no receipt of the transaction");
    if (receipt.blockHash !== blockHash) throw new Absent("the transaction is not in this block");
    return receipt.logs;
  }

  /** Where the endpoint has no receipt, or one too large to be read: its sender has it log what nobody asked for. */
  async #logsInBlock({ address, topics }: LogFilter, { blockHash }: LogBlock): Promise<readonly RpcLog[]> {
    const logs = z.array(logSchema).safeParse(await this.#send("eth_getLogs", [{ blockHash, address, topics }]));
    if (logs.success) return logs.data;
    throw new RpcFailure("the endpoint's answer to eth_getLogs is no list of logs");
  }

  async #block(block: BlockTag): Promise<z.infer<typeof blockSchema>> {
    const parsed = blockSchema.safeParse(await this.#send("eth_getBlockByNumber", [tagOf(block), false]));
    if (parsed.success) return parsed.data;
    throw new RpcFailure("the endpoint's answer to eth_getBlockByNumber is no block");
  }

  close(): Promise<void> {
    return this.#endpoint.close();
  }

  async #ask(method: string, params: readonly unknown[]): Promise<string> {
    const answer = await this.#send(method, params);
    if (typeof answer !== "string" || !/^0x[0-9a-fA-F]*$/.test(answer))
      throw new RpcFailure(`the endpoint's answer to ${method} is not hex`);
    return answer;
  }

  #send(method: string, params: readonly unknown[]): Promise<unknown> {
    return this.#endpoint.call(method, params).catch((error: unknown) => {
      throw error instanceof RpcError ? new RpcFailure(`${method}: ${error.message.slice(0, 200)}`) : error;
    });
  }
}

const datedOf = ({ number, timestamp }: z.infer<typeof blockSchema>): Dated => ({
  blockNumber: BigInt(number),
  blockTimestamp: BigInt(timestamp),
});

const tagOf = (block: BlockTag): string => (block === "latest" ? block : `0x${block.toString(16)}`);
