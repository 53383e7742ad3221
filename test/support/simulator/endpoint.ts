/** A simulated JSON-RPC endpoint of the simulated chain, with the faults of real ones. */
import { toBeHex, zeroPadValue } from "ethers";
import { CONTRACT } from "../../../relayer/chain/abi/contract";
import { quantityOf } from "../../../relayer/chain/rpc/quantities";
import { classifyRpcError, RpcError } from "../../../protocol/rpc/errors";
import type { RpcCall, RpcResult } from "../../../protocol/rpc/endpoint";
import { payerAddress, REFUSAL, RICH, type Refusal, type SimulatedBlock, type SimulatedChain } from "./chain";

export type EndpointFault =
  | "none"
  /** Connections are refused. */
  | "down"
  /** It serves another chain, whose head is higher. */
  | "other chain"
  /** It has the blocks, and neither receipts nor transactions. */
  | "no receipts"
  /** It is some blocks behind. */
  | "lags"
  /** Its head stays where it was, and it keeps the transactions that it takes to itself. */
  | "stands still"
  /** It takes transactions and forgets them. */
  | "forgets"
  /** It takes transactions, and its answers are lost. */
  | "answers lost"
  /** It takes each transaction twice, as behind a proxy that tries again, and answers as to the second. */
  | "sent twice"
  /** It takes no transaction and says that it has it. */
  | "already known"
  /** It takes no transaction and says that its nonce is used. */
  | "nonce too low"
  /** Only its transaction counts are some blocks behind. */
  | "counts lag"
  /** Senders have sent nothing, it says. */
  | "counts none"
  /** Senders have sent a million transactions, it says. */
  | "counts many"
  /** All its blocks have numbers far ahead of theirs, it says. */
  | "numbers ahead"
  /** Nobody has any gas, it says. */
  | "balances none"
  /** A block's fees are a thousand times what they are, it says. */
  | "fees high"
  /** It knows no transaction by its hash; receipts it has. */
  | "no transactions"
  /** It refuses to read logs of more than three blocks at once. */
  | "short ranges"
  /** Its answers take up to some seconds each, so that later questions are answered first. */
  | "slow";

/** Of any method: what each handler takes them for is its own matter. */
type Params = readonly [never, never, never];

export class Node {
  fault: EndpointFault = "none";
  #stoodAt: number | undefined;
  /** Of how many blocks it keeps the transaction counts. */
  countsKept = Infinity;
  readonly #chain: SimulatedChain;
  readonly #other: () => SimulatedChain;
  readonly #payers: number;
  readonly #payersAnswer: string;

  constructor(chain: SimulatedChain, other: () => SimulatedChain, payers: number) {
    this.#chain = chain;
    this.#other = other;
    this.#payers = payers;
    this.#payersAnswer = payersAnswer(payers);
  }

  /** How long each way of an exchange takes, at most. */
  get wayMs(): number {
    return this.fault === "slow" ? 2_000 : 20;
  }

  /** All calls are answered at one instant. */
  answer(calls: readonly RpcCall[]): readonly RpcResult[] {
    return calls.map((call) => {
      try {
        const value = this.#answer(call.method, call.params as Params);
        return { value: value ?? null };
      } catch (error) {
        return { error: error instanceof RpcError ? error : classifyRpcError(error) };
      }
    });
  }

  get #serves(): SimulatedChain {
    return this.fault === "other chain" ? this.#other() : this.#chain;
  }

  get #head(): number {
    const { head, blocks } = this.#serves;
    this.#stoodAt = this.fault === "stands still" ? (this.#stoodAt ?? head.number) : undefined;
    if (this.#stoodAt !== undefined) return Math.min(this.#stoodAt, head.number);
    return this.fault === "lags" ? Math.max(blocks[0]?.number ?? 0, head.number - LAG) : head.number;
  }

  get #feesTimes(): bigint {
    return this.fault === "fees high" ? 1_000n : 1n;
  }

  #answer(method: string, params: Params): unknown {
    if (this.fault === "down") throw new RpcError("transport", "connection refused");
    const handler = this.#handlers[method] ?? refuse({ code: -32_601, message: `no method ${method}` });
    return handler(params);
  }

  readonly #handlers: Readonly<Record<string, (params: Params) => unknown>> = {
    eth_chainId: () => quantityOf(this.#serves.chainId),
    eth_blockNumber: () => this.#said(this.#head),
    eth_maxPriorityFeePerGas: () => quantityOf(10n ** 8n * this.#feesTimes),
    eth_getBlockByNumber: ([tag]) => this.#rpcBlock(this.#block(tag)),
    eth_getTransactionCount: ([address, tag]) => quantityOf(this.#count(address, tag)),
    eth_getBalance: ([address, tag]) => quantityOf(this.#balance(address, tag)),
    eth_estimateGas: ([call, tag]) => this.#estimate(call, tag),
    eth_call: ([call, tag, override]) => this.#call(call, tag, override),
    eth_getLogs: ([filter]) => this.#logs(filter),
    eth_getBlockReceipts: ([hash]) => (this.fault === "no receipts" ? null : (this.#byHash(hash)?.receipts ?? null)),
    eth_getTransactionReceipt: ([hash]) => (this.fault === "no receipts" ? null : this.#receipt(hash)),
    eth_getTransactionByHash: ([hash]) => this.#transaction(hash),
    eth_sendRawTransaction: ([raw]) => this.#send(raw),
  };

  #payerOf(address: string): number {
    return Array.from({ length: this.#payers + 1 }, (_, payer) => payerAddress(payer)).indexOf(address);
  }

  #block(tag: string): SimulatedBlock | undefined {
    const number = tag === "latest" ? this.#head : Number(tag);
    return number > this.#head ? undefined : this.#serves.block(number);
  }

  #said(block: number): string {
    return quantityOf(block + (this.fault === "numbers ahead" ? 1_000 : 0));
  }

  #receipt(hash: string): unknown {
    const receipt = this.#serves.receipt(hash, this.#head);
    return receipt && { ...receipt, blockNumber: this.#said(Number(receipt.blockNumber)) };
  }

  #count(address: string, tag: string): number {
    if (this.fault === "counts none") return 0;
    if (this.fault === "counts many") return 1_000_000;
    if (tag !== "latest" && Number(tag) <= this.#head - this.countsKept)
      refuse({ code: -32_000, message: "missing trie node" });
    return (this.#counted(tag) ?? notFound()).nonces.get(this.#payerOf(address)) ?? 0;
  }

  #balance(address: string, tag: string): bigint {
    if (this.fault === "balances none") return 0n;
    return (this.#block(tag) ?? notFound()).balances.get(this.#payerOf(address)) ?? RICH;
  }

  #counted(tag: string): SimulatedBlock | undefined {
    const block = this.#block(tag);
    if (this.fault !== "counts lag" || tag !== "latest" || block === undefined) return block;
    return this.#serves.block(Math.max(this.#serves.blocks[0]?.number ?? 0, block.number - LAG));
  }

  #byHash(hash: string): SimulatedBlock | undefined {
    return this.#serves.blocks.find((block) => block.hash === hash && block.number <= this.#head);
  }

  #rpcBlock(block: SimulatedBlock | undefined): unknown {
    if (block === undefined) return null;
    const { number, hash, parentHash, logsBloom } = block;
    const transactions = block.transactions.map(({ hash: of, payer, nonce }) => ({
      hash: of,
      from: payerAddress(payer),
      nonce: quantityOf(nonce),
    }));
    const baseFeePerGas = quantityOf(this.#serves.baseFee * this.#feesTimes);
    return { number: this.#said(number), hash, parentHash, logsBloom, baseFeePerGas, transactions };
  }

  #estimate({ data }: { data: string }, tag: string): string {
    const { groups } = this.#block(tag) ?? notFound();
    if (this.fault !== "other chain" && this.#chain.isRefused(data, groups))
      refuse({ code: 3, message: "execution reverted", data: REFUSAL });
    return quantityOf(100_000);
  }

  #call({ data }: { data: string }, tag: string, override: unknown): string {
    const { groups } = this.#block(tag) ?? notFound();
    if (this.fault === "other chain") return "0x";
    if (override !== undefined) return this.#probe(data, groups);
    if (data === ASKS_PAYERS) return this.#payersAnswer;
    if (this.#chain.calls.get(data)?.nature === "reverts" || this.#chain.isRefused(data, groups))
      refuse({ code: 3, message: "execution reverted", data: REFUSAL });
    return "0x";
  }

  /** What the probe of `batchProbe.ts` returns for its calls. */
  #probe(data: string, groups: ReadonlyMap<string, number>): string {
    const bytes = Buffer.from(data.slice(2), "hex");
    let answer = "0x";
    for (let at = 32; at < bytes.length;) {
      const size = Number(BigInt(`0x${bytes.subarray(at, at + 32).toString("hex")}`));
      const call = `0x${bytes.subarray(at + 32, at + 32 + size).toString("hex")}`;
      const isRefused = this.#chain.isRefused(call, groups);
      const reason = isRefused ? REFUSAL : "0x";
      for (const value of [isRefused ? 0 : 1, 80_000, reason.length / 2 - 1])
        answer += zeroPadValue(toBeHex(value), 32).slice(2);
      answer += reason.slice(2);
      at += 32 + size;
    }
    return answer;
  }

  #logs(filter: { blockHash?: string; fromBlock?: string; toBlock?: string }): unknown {
    if (filter.blockHash !== undefined) {
      const block = this.#byHash(filter.blockHash) ?? notFound();
      return this.fault === "no receipts" ? [] : block.receipts.flatMap(({ logs }) => logs);
    }
    const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)];
    if (this.fault === "short ranges" && to - from >= 3)
      refuse({ code: -32_600, message: "query exceeds the most blocks that are read" });
    return this.#serves.blocks
      .filter(({ number }) => number >= from && number <= to)
      .flatMap(({ receipts }) => receipts.flatMap(({ logs }) => logs));
  }

  #transaction(hash: string): unknown {
    if (this.fault === "no receipts" || this.fault === "no transactions") return null;
    if (this.#serves.isPending(hash)) return { hash, blockNumber: null };
    const receipt = this.#serves.receipt(hash, this.#head);
    return receipt === undefined ? null : { hash, blockNumber: receipt.blockNumber };
  }

  #send(raw: string): string {
    if (this.fault === "other chain") refuse({ code: -32_000, message: "invalid chain id for signer" });
    if (this.fault === "forgets" || this.fault === "stands still") return "0x";
    if (this.fault === "already known" || this.fault === "nonce too low")
      refuse({ code: -32_000, message: this.fault });
    if (this.fault === "sent twice") this.#chain.send(raw);
    const refusal = this.#chain.send(raw);
    if (this.fault === "answers lost") throw new RpcError("transport", "the answer was lost");
    if (refusal !== undefined) refuse(refusal);
    return "0x";
  }
}

const payersAnswers = new Map<number, string>();

function payersAnswer(payers: number): string {
  const addresses = Array.from({ length: payers }, (_, index) => payerAddress(index + 1));
  const answer = payersAnswers.get(payers) ?? CONTRACT.encodeFunctionResult("apiPayers", [addresses]);
  payersAnswers.set(payers, answer);
  return answer;
}

const LAG = 3;
const ASKS_PAYERS = CONTRACT.encodeFunctionData("apiPayers");

function refuse(refusal: Refusal): never {
  throw refusal;
}

const notFound = (): never => refuse({ code: -32_000, message: "header not found" });
