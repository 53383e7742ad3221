/**
 * A simulated chain: blocks, a pool of transactions, and a contract whose only write is `addGroup`. Transactions are
 * JSON instead of RLP and unsigned: the executor of the simulator makes them.
 */
import { hash as digest } from "node:crypto";
import { getAddress, keccak256, toBeHex, toUtf8Bytes, ZeroHash, zeroPadValue } from "ethers";
import { CONTRACT } from "../../../relayer/chain/abi/contract";
import { quantityOf } from "../../../relayer/chain/rpc/quantities";
import { unionOf } from "../../../relayer/chain/events/bloom";

export const CONTRACT_ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const addresses = new Map<number, string>();
const accounts = new Map<number, string>();

export function payerAddress(payer: number): string {
  const address = addresses.get(payer) ?? getAddress(zeroPadValue(toBeHex(0xaa00 + payer), 20));
  addresses.set(payer, address);
  return address;
}

export function accountId(account: number): string {
  const id = accounts.get(account) ?? keccak256(toUtf8Bytes(`account ${account}`));
  accounts.set(account, id);
  return id;
}

/** Of blocks and transactions: quicker than Keccak, and nobody computes them again. */
const hashOf = (text: string): string => `0x${digest("sha256", text)}`;

/** Of the blocks before any reorg, which have the same hashes in all histories: by chain and number. */
const firstHashes = new Map<string, string[]>();

/**
 * What a write does: succeeds, is refused by the simulation, reverts only once it is mined, succeeds alone and leaves
 * too little gas for others, so that their transaction fails as a whole, or succeeds only as its account's first.
 */
export type Nature = "good" | "refused" | "reverts" | "greedy" | "first";

/** An `addGroup` of the history. */
export interface Call {
  readonly account: string;
  readonly name: string;
  readonly nature: Nature;
}

export interface SimulatedTransaction {
  readonly hash: string;
  readonly raw: string;
  readonly payer: number;
  readonly nonce: number;
  readonly calls: readonly string[];
  readonly maxFee: bigint;
  readonly gas: bigint;
  /** Of a top-up. */
  readonly toPayer: number | undefined;
  readonly value: bigint;
}

interface EncodedLog {
  readonly topics: readonly string[];
  readonly data: string;
}

interface Log extends EncodedLog {
  readonly address: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly logIndex: string;
}

export interface SimulatedReceipt {
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly from: string;
  readonly to: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly logsBloom: string;
  readonly logs: readonly Log[];
}

export interface SimulatedBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  readonly transactions: readonly SimulatedTransaction[];
  readonly receipts: readonly SimulatedReceipt[];
  readonly logsBloom: string;
  /** After the block: the next nonce and the gas of each payer, and the number of groups of each account. */
  readonly nonces: ReadonlyMap<number, number>;
  readonly balances: ReadonlyMap<number, bigint>;
  readonly groups: ReadonlyMap<string, number>;
}

/** What each payer begins with. */
export const RICH = 10n ** 20n;

interface After {
  readonly nonces: Map<number, number>;
  readonly balances: Map<number, bigint>;
  readonly groups: Map<string, number>;
}

export type Refusal = { readonly code: number; readonly message: string; readonly data?: string };

const EMPTY_BLOOM = `0x${"00".repeat(256)}`;
export const REFUSAL = CONTRACT.encodeErrorResult("UnknownAccount", [1n]);

interface Encoded {
  payer: number;
  nonce: number;
  calls: readonly string[];
  maxFee: string;
  gas?: string;
  toPayer?: number;
  value?: string;
}

export const encodeTransaction = (transaction: Encoded): { rawTransaction: string; hash: string } => {
  const rawTransaction = `0x${Buffer.from(JSON.stringify(transaction)).toString("hex")}`;
  return { rawTransaction, hash: hashOf(rawTransaction) };
};

function decodeTransaction(raw: string): SimulatedTransaction {
  const fields = JSON.parse(Buffer.from(raw.slice(2), "hex").toString()) as Encoded;
  const { payer, nonce, calls, maxFee, gas = "0", toPayer, value = "0" } = fields;
  return {
    payer,
    nonce,
    calls,
    maxFee: BigInt(maxFee),
    gas: BigInt(gas),
    toPayer,
    value: BigInt(value),
    raw,
    hash: hashOf(raw),
  };
}

const costOf = ({ gas, maxFee, value }: SimulatedTransaction): bigint => gas * maxFee + value;

export class SimulatedChain {
  baseFee = 10n ** 9n;
  /** Calldata of the history's writes; others have no effect. */
  readonly calls = new Map<string, Call>();
  /** Every transaction that ever reached a node: any of them may return. */
  readonly everSent = new Map<string, SimulatedTransaction>();
  readonly #blocks: SimulatedBlock[];
  readonly #first: number;
  #pool: SimulatedTransaction[] = [];
  /** What payers have left from the next block on. */
  readonly #spent = new Map<number, bigint>();
  #forks = 0;
  readonly #name: string;
  readonly #firstHashes: string[];

  constructor(
    readonly chainId: number,
    first: number,
  ) {
    this.#name = `chain ${chainId}`;
    this.#first = first;
    const named = `${this.#name} ${first}`;
    this.#firstHashes = firstHashes.get(named) ?? [];
    firstHashes.set(named, this.#firstHashes);
    this.#blocks = [this.#made(first, ZeroHash, [], { nonces: new Map(), balances: new Map(), groups: new Map() })];
  }

  get head(): SimulatedBlock {
    return this.#blocks.at(-1) as SimulatedBlock;
  }

  get blocks(): readonly SimulatedBlock[] {
    return this.#blocks;
  }

  block(number: number): SimulatedBlock | undefined {
    return this.#blocks[number - this.#first];
  }

  receipt(hash: string, upTo: number): SimulatedReceipt | undefined {
    for (const { number, receipts } of this.#blocks) {
      const found = number > upTo ? undefined : receipts.find((receipt) => receipt.transactionHash === hash);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** By the state of an account: what a simulation on that state sees. */
  isRefused(data: string, groups: ReadonlyMap<string, number>): boolean {
    const { account, nature } = this.calls.get(data) ?? { account: "" };
    return nature === "refused" || (nature === "first" && groups.has(account));
  }

  isPending(hash: string): boolean {
    return this.#pool.some((transaction) => transaction.hash === hash);
  }

  /** Accepts a transaction, or says in a node's words why not. */
  send(raw: string): Refusal | undefined {
    const transaction = decodeTransaction(raw);
    this.everSent.set(transaction.hash, transaction);
    const { payer, nonce, hash, maxFee } = transaction;
    if (this.isPending(hash)) return { code: -32_000, message: "already known" };
    if (nonce < (this.head.nonces.get(payer) ?? 0)) return { code: -32_000, message: "nonce too low" };
    if (costOf(transaction) > (this.head.balances.get(payer) ?? RICH))
      return { code: -32_000, message: "insufficient funds for gas * price + value" };
    const other = this.#pool.find((each) => each.payer === payer && each.nonce === nonce);
    if (other !== undefined && maxFee * 10n <= other.maxFee * 11n)
      return { code: -32_000, message: "replacement transaction underpriced" };
    this.#pool = [...this.#pool.filter((each) => each !== other), transaction];
    return undefined;
  }

  /** Another sender's transaction with the payer's next nonce, mined next. */
  useNonce(payer: number): void {
    const nonce = this.head.nonces.get(payer) ?? 0;
    this.#pool = this.#pool.filter((each) => each.payer !== payer || each.nonce !== nonce);
    this.send(encodeTransaction({ payer, nonce, calls: [], maxFee: String(10n ** 15n) }).rawTransaction);
  }

  spend(payer: number, left: bigint): void {
    this.#spent.set(payer, left);
  }

  dropPool(): void {
    this.#pool = [];
  }

  /** All transactions that were dropped or replaced are sent again, by nodes that still had them. */
  revive(): void {
    for (const { raw } of [...this.everSent.values()].reverse()) this.send(raw);
  }

  mine(isEmpty = false): void {
    const nonces = new Map(this.head.nonces);
    const groups = new Map(this.head.groups);
    const balances = new Map([...this.head.balances, ...this.#spent]);
    this.#spent.clear();
    const balanceOf = (payer: number): bigint => balances.get(payer) ?? RICH;
    const included: SimulatedTransaction[] = [];
    const isNext = (one: SimulatedTransaction): boolean =>
      one.nonce === (nonces.get(one.payer) ?? 0) && one.maxFee >= this.baseFee && costOf(one) <= balanceOf(one.payer);
    const next = (): SimulatedTransaction | undefined => this.#pool.find(isNext);
    for (let found = isEmpty ? undefined : next(); found !== undefined; found = next()) {
      included.push(found);
      nonces.set(found.payer, found.nonce + 1);
      balances.set(found.payer, balanceOf(found.payer) - found.value);
      if (found.toPayer !== undefined) balances.set(found.toPayer, balanceOf(found.toPayer) + found.value);
      this.#pool = this.#pool.filter((each) => each !== found);
    }
    this.#blocks.push(this.#made(this.head.number + 1, this.head.hash, included, { nonces, balances, groups }));
  }

  /** Replaces the newest blocks by as many and one more. `keep`: their transactions are mined again by and by. */
  reorg(depth: number, keep: boolean): void {
    const gone = this.#blocks.splice(Math.max(1, this.#blocks.length - depth));
    this.#forks += 1;
    const back = gone.flatMap(({ transactions }) => transactions);
    this.#pool = [...this.#pool, ...(keep ? back : [])].filter(
      ({ payer, nonce }) => nonce >= (this.head.nonces.get(payer) ?? 0),
    );
    for (let made = 0; made <= gone.length; made++) this.mine(true);
  }

  #made(
    number: number,
    parentHash: string,
    transactions: readonly SimulatedTransaction[],
    { nonces, balances, groups }: After,
  ): SimulatedBlock {
    const hash = this.#hashOf(number, parentHash);
    const receipts: SimulatedReceipt[] = [];
    let logIndex = 0;
    const logOf = (transactionHash: string, log: EncodedLog): Log => ({
      ...log,
      address: CONTRACT_ADDRESS,
      blockNumber: quantityOf(number),
      blockHash: hash,
      transactionHash,
      logIndex: quantityOf(logIndex++),
    });
    for (const transaction of transactions) {
      const { logs, isDone } = this.#execute(transaction, groups);
      receipts.push({
        transactionHash: transaction.hash,
        blockNumber: quantityOf(number),
        blockHash: hash,
        from: payerAddress(transaction.payer),
        to: CONTRACT_ADDRESS,
        status: isDone ? "0x1" : "0x0",
        gasUsed: "0x5208",
        logsBloom: bloomOf(logs),
        logs: logs.map((log) => logOf(transaction.hash, log)),
      });
    }
    const logsBloom = receipts.length === 0 ? EMPTY_BLOOM : unionOf(receipts.map((receipt) => receipt.logsBloom));
    return { number, hash, parentHash, transactions, receipts, logsBloom, nonces, balances, groups };
  }

  #hashOf(number: number, parentHash: string): string {
    const known = this.#forks === 0 ? this.#firstHashes[number - this.#first] : undefined;
    const hash = known ?? hashOf(`${this.#name} ${number} ${parentHash} ${this.#forks}`);
    if (this.#forks === 0) this.#firstHashes[number - this.#first] = hash;
    return hash;
  }

  /** As the contract: a write alone reverts its transaction, one of a batch reports its failure by an event. */
  #execute({ calls }: SimulatedTransaction, groups: Map<string, number>): { logs: EncodedLog[]; isDone: boolean } {
    const logs: EncodedLog[] = [];
    if (calls.length > 1 && calls.some((data) => this.calls.get(data)?.nature === "greedy"))
      return { logs, isDone: false };
    for (const [index, data] of calls.entries()) {
      const call = this.calls.get(data);
      if (call === undefined) continue;
      if (call.nature === "reverts" || this.isRefused(data, groups)) {
        if (calls.length === 1) return { logs: [], isDone: false };
        logs.push(callFailed(index));
        continue;
      }
      const groupId = (groups.get(call.account) ?? 0) + 1;
      groups.set(call.account, groupId);
      logs.push(groupAdded(call.account, groupId, call.name));
    }
    return { logs, isDone: true };
  }
}

/** Encoded once: histories have the same accounts and names. */
const encodedLogs = new Map<string, EncodedLog>();

function encodedLog(name: string, values: readonly unknown[]): EncodedLog {
  const known = `${name} ${values.join()}`;
  const log = encodedLogs.get(known) ?? CONTRACT.encodeEventLog(name, values);
  encodedLogs.set(known, log);
  return log;
}

const callFailed = (index: number): EncodedLog => encodedLog("CallFailed", [index, REFUSAL]);
const groupAdded = (account: string, groupId: number, name: string): EncodedLog =>
  encodedLog("GroupAdded", [account, groupId, name, "", 1n]);

const blooms = new Map<string, string>();

function bloomOf(logs: readonly { readonly topics: readonly string[] }[]): string {
  return unionOf([EMPTY_BLOOM, ...logs.flatMap(({ topics }) => [CONTRACT_ADDRESS, ...topics].map(bitsOf))]);
}

function bitsOf(value: string): string {
  const known = blooms.get(value);
  if (known !== undefined) return known;
  const bits = Buffer.alloc(256);
  const hash = Buffer.from(keccak256(value).slice(2), "hex");
  for (const at of [0, 2, 4]) {
    const bit = hash.readUInt16BE(at) & 0x7ff;
    const byte = 255 - (bit >> 3);
    bits[byte] = (bits[byte] ?? 0) | (1 << (bit & 7));
  }
  const text = `0x${bits.toString("hex")}`;
  blooms.set(value, text);
  return text;
}
