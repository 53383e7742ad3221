/**
 * The keyholder's own eyes on the contract. One `eth_call` per decision at the latest block, nothing remembered from one decision to the next,
 * and no answer at all when the head is old, goes backwards, or cannot be agreed on. Source: design of the executor, "Keyholder".
 */
import { KEY_NAMESPACE_CALL, TRUSTED_FORWARDER_CALL, decodeDecision, encodeQuestion, type Decision } from "../../protocol/decision";
import { ZERO_HASH, parseAddress } from "../../protocol/ids";
import type { AccountId, ActionHash, Address, Hash32, KeyId, PkpId } from "../../protocol/ids";
import { agreed, unavailable } from "./quorum";
import { RpcEndpoint, RpcFailure, type BlockTag } from "./rpc";

export interface ChainOptions {
  readonly rpcUrls: readonly string[];
  readonly quorum: number;
  readonly chainId: bigint;
  readonly contractAddress: Address;
  readonly timeoutMs: number;
  /** 0 = any age. */
  readonly maxHeadAgeSeconds: number;
  readonly nowSeconds?: () => number;
}

/** A head from the future means a wrong clock here or there; decisions about expiry would be wrong. */
const MAX_CLOCK_SKEW_SECONDS = 60;
/** As long as a head may be old by default: within it no endpoint goes back, beyond it the age of the head itself decides. */
const MARK_LIFE_SECONDS = 60;
/** An endpoint behind a load balancer may answer from a node one block back: it gets a moment to catch up. */
const CATCH_UP_DELAYS_MS = [100, 300, 600];

export class Chain {
  readonly #endpoints: readonly RpcEndpoint[];
  readonly #options: ChainOptions;
  readonly #nowSeconds: () => number;
  #forwarder: Address | undefined;
  #highest = { block: 0n, at: -Infinity };

  constructor(options: ChainOptions) {
    this.#options = options;
    this.#endpoints = options.rpcUrls.map((url) => new RpcEndpoint(url, options.timeoutMs));
    this.#nowSeconds = options.nowSeconds ?? (() => Date.now() / 1000);
  }

  /** May the key run the action, with the PKP if one is named? @throws KeywrightError `chain_unavailable`. */
  async explain(key: KeyId | AccountId, action: ActionHash, pkp: PkpId | undefined): Promise<Decision> {
    const data = encodeQuestion(key, action, pkp);
    for (const delayMs of CATCH_UP_DELAYS_MS) {
      const decision = await this.#read(data);
      if (decision !== "behind") return this.#requireFresh(decision);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
    const last = await this.#read(data);
    if (last === "behind") throw unavailable("The chain's head is behind a block that was seen before.");
    return this.#requireFresh(last);
  }

  /**
   * The newest block, asked for in the same way as a decision: old or backward heads and a dead contract show here as they would in a run.
   * @throws KeywrightError `chain_unavailable`.
   */
  async head(): Promise<bigint> {
    return (await this.explain(ZERO_HASH as KeyId, ZERO_HASH as ActionHash, undefined)).blockNumber;
  }

  /** Base fee of the newest block, in wei. @throws KeywrightError `chain_unavailable`. */
  async baseFee(): Promise<bigint> {
    const { wei } = await agreed(this.#endpoints, this.#options.quorum, (endpoint, block) => endpoint.baseFee(block));
    return wei;
  }

  /** The forwarder that the contract trusts; it never changes. @throws KeywrightError `chain_unavailable`. */
  async forwarder(): Promise<Address> {
    if (this.#forwarder !== undefined) return this.#forwarder;
    const { contractAddress, quorum } = this.#options;
    const ask = async (endpoint: RpcEndpoint): Promise<Address> => addressOfWord(await endpoint.call(contractAddress, TRUSTED_FORWARDER_CALL, "latest"));
    const answers = (await Promise.allSettled(this.#endpoints.map(ask))).flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const agreedOn = answers.find((address) => answers.filter((other) => other === address).length >= quorum);
    if (agreedOn === undefined) throw unavailable("Too few RPC endpoints agree on the contract's forwarder.");
    return (this.#forwarder = agreedOn);
  }

  /** Every endpoint must be on the configured chain and show the contract with the expected key namespace. Throws an Error that says what differs. */
  async requireNamespace(expected: Hash32): Promise<void> {
    const answers = await Promise.allSettled(this.#endpoints.map((endpoint) => this.#checkEndpoint(endpoint, expected)));
    const wrong = answers.flatMap((answer) => (answer.status === "rejected" && answer.reason instanceof WrongChain ? [answer.reason] : []));
    if (wrong[0] !== undefined) throw wrong[0];
    const working = answers.filter(({ status }) => status === "fulfilled").length;
    if (working < this.#options.quorum) {
      throw new Error(`only ${working} of ${answers.length} RPC endpoints answer and ${this.#options.quorum} must agree: ${reasons(answers)}`);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()));
  }

  /** An endpoint behind the newest block seen before the question was sent counts as one that failed; "behind" when that left too few. */
  async #read(data: string): Promise<Decision | "behind"> {
    const floor = this.#floor();
    let isBehind = false;
    const ask = async (endpoint: RpcEndpoint, block: BlockTag): Promise<Decision> => {
      const decision = readDecision(await endpoint.call(this.#options.contractAddress, data, block));
      if (decision.blockNumber >= floor) return decision;
      isBehind = true;
      throw new RpcFailure("the endpoint is behind a block that was seen before");
    };
    return agreed(this.#endpoints, this.#options.quorum, ask).catch((error: unknown) => {
      if (isBehind) return "behind";
      throw error;
    });
  }

  #requireFresh(decision: Decision): Decision {
    const age = this.#nowSeconds() - Number(decision.blockTimestamp);
    const { maxHeadAgeSeconds } = this.#options;
    if (maxHeadAgeSeconds > 0 && age > maxHeadAgeSeconds)
      throw unavailable(`The chain's head is ${Math.floor(age)} seconds old; at most ${maxHeadAgeSeconds} are accepted.`);
    if (maxHeadAgeSeconds > 0 && age < -MAX_CLOCK_SKEW_SECONDS)
      throw unavailable(`The chain's head is ${Math.floor(-age)} seconds ahead of this machine's clock.`);
    if (decision.blockNumber >= this.#floor()) this.#highest = { block: decision.blockNumber, at: this.#nowSeconds() };
    return decision;
  }

  /** The newest block seen lately. A mark that nobody confirms is forgotten: one absurd number would otherwise stop every decision for good. */
  #floor(): bigint {
    return this.#nowSeconds() - this.#highest.at < MARK_LIFE_SECONDS ? this.#highest.block : 0n;
  }

  async #checkEndpoint(endpoint: RpcEndpoint, expected: Hash32): Promise<void> {
    const { chainId, contractAddress } = this.#options;
    const actual = await endpoint.chainId();
    if (actual !== chainId) throw new WrongChain(`an RPC endpoint is on chain ${actual}, but CHAIN_ID is ${chainId}`);
    const namespace = await endpoint.call(contractAddress, KEY_NAMESPACE_CALL, "latest");
    if (namespace.length !== expected.length) throw new WrongChain(`there is no AccountManager at ${contractAddress} on chain ${chainId}`);
    if (namespace.toLowerCase() !== expected) {
      throw new WrongChain(`the contract at ${contractAddress} has key namespace ${namespace}, this executor computes ${expected}: it would derive other keys`);
    }
  }
}

function addressOfWord(word: string): Address {
  const address = parseAddress(`0x${word.slice(-40)}`);
  if (address === undefined || word.length !== 66) throw new RpcFailure("the answer is no address");
  return address;
}

function readDecision(data: string): Decision {
  try {
    return decodeDecision(data);
  } catch (error) {
    throw new RpcFailure((error as Error).message);
  }
}

/** Not a matter of waiting: the configuration names another chain or contract. */
export class WrongChain extends Error {
  override readonly name = "WrongChain";
}

function reasons(answers: readonly PromiseSettledResult<void>[]): string {
  return answers.flatMap((answer) => (answer.status === "rejected" ? [String((answer.reason as Error).message)] : [])).join("; ");
}
