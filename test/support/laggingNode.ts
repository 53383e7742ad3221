/**
 * Simulates a lagging node behind a load-balanced address: a random share of the proxy's calls is answered as if the
 * newest blocks did not exist.
 */
import { Transaction } from "ethers";
import { request } from "undici";
import type { Fault, RpcAnswer, RpcMessage } from "./rpcProxy";

const UNKNOWN: RpcAnswer = { error: { code: -32_000, message: "header not found" } };
const EMPTY: RpcAnswer = { result: [] };
const NOTHING: RpcAnswer = { result: null };
/** The index of the block parameter, by method. */
const BLOCK_AT: Readonly<Record<string, number>> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
};

interface LagOptions {
  /** The node behind the proxy. */
  readonly url: string;
  readonly blocks: number;
  /** Share of the calls that the lagging node answers. */
  readonly share: number;
  readonly random?: () => number;
}

const asking =
  (url: string): Ask =>
  async (method, params) => {
    const { body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    return (await body.json()) as RpcAnswer;
  };

/** Answers as if no block after `stands` existed, and keeps the transactions that it takes to itself. */
export function frozen({ url, stands }: { url: string; stands: number }): Fault {
  const [ask, taken] = [asking(url), new Set<unknown>()];
  return async (call) => {
    const [first] = call.params;
    if (call.method === "eth_sendRawTransaction") {
      const { hash } = Transaction.from(first as string);
      taken.add(hash);
      return { result: hash };
    }
    if (call.method === "eth_getTransactionByHash" && taken.has(first)) return { result: { hash: first } };
    return answer(call, stands, ask);
  };
}

export function lagging({ url, blocks, share, random = Math.random }: LagOptions): Fault {
  const ask = asking(url);
  return async (call) => {
    if (random() >= share) return undefined;
    const height = await ask("eth_blockNumber", []);
    const stands = "result" in height ? Math.max(0, Number(height.result) - blocks) : 0;
    return answer(call, stands, ask);
  };
}

type Ask = (method: string, params: readonly unknown[]) => Promise<RpcAnswer>;

async function answer(call: RpcMessage, stands: number, ask: Ask): Promise<RpcAnswer | undefined> {
  const { method, params } = call;
  const place = BLOCK_AT[method];
  if (method === "eth_blockNumber") return { result: hex(stands) };
  if (place !== undefined) return atBlock(call, place, stands, ask);
  if (method === "eth_getBlockByNumber") {
    if (!isNumber(params[0])) return ask(method, [hex(stands), ...params.slice(1)]);
    return Number(params[0]) > stands ? NOTHING : undefined;
  }
  if (method === "eth_getLogs") return logs(params[0] as LogFilter, stands, ask);
  if (/^eth_get(TransactionReceipt|TransactionByHash|BlockByHash|BlockReceipts)$/.test(method))
    return known(await ask(method, params), stands);
  return undefined;
}

async function atBlock(
  { method, params }: RpcMessage,
  place: number,
  stands: number,
  ask: Ask,
): Promise<RpcAnswer | undefined> {
  const block = params[place] ?? "latest";
  if (typeof block !== "string") return undefined;
  if (isNumber(block)) return Number(block) > stands ? UNKNOWN : undefined;
  const asked = [...params];
  asked[place] = hex(stands);
  return ask(method, asked);
}

interface LogFilter {
  readonly blockHash?: string;
  readonly fromBlock?: string;
  readonly toBlock?: string;
}

async function logs(filter: LogFilter, stands: number, ask: Ask): Promise<RpcAnswer | undefined> {
  if (filter.blockHash !== undefined) {
    const block = known(await ask("eth_getBlockByHash", [filter.blockHash, false]), stands);
    return "result" in block && block.result === null ? EMPTY : undefined;
  }
  if (Number(filter.fromBlock) > stands) return EMPTY;
  return Number(filter.toBlock) > stands ? ask("eth_getLogs", [{ ...filter, toBlock: hex(stands) }]) : undefined;
}

/** Hides answers from blocks that the node does not have yet. */
function known(answered: RpcAnswer, stands: number): RpcAnswer {
  if (!("result" in answered) || answered.result === null) return answered;
  const [first] = Array.isArray(answered.result) ? answered.result : [answered.result];
  const { blockNumber, number = blockNumber } = (first ?? {}) as { blockNumber?: string; number?: string };
  return number !== undefined && Number(number) > stands ? NOTHING : answered;
}

const hex = (block: number): string => `0x${block.toString(16)}`;
const isNumber = (block: unknown): boolean => typeof block === "string" && block.startsWith("0x");
