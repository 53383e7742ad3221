/**
 * The keyholder's own reads of the contract. Every decision is one `eth_call` at the latest block, never cached. Fails
 * when the head is too old, goes backwards, or the endpoints do not agree.
 */
import { decodeAdmission, encodeAdmission, type Admission } from "../../protocol/admission";
import {
  KEY_NAMESPACE_CALL,
  ROOT_COMMITMENT_CALL,
  TRUSTED_FORWARDER_CALL,
  decodeDecision,
  encodeQuestion,
  type Decision,
} from "../../protocol/decision";
import { ZERO_HASH, parseAddress } from "../../protocol/ids";
import type { AccountId, ActionHash, Address, Hash32, KeyId, PkpId } from "../../protocol/ids";
import { agreed, unavailable, type Ask } from "./quorum";
import { RpcEndpoint, RpcFailure, type BlockTag, type Dated } from "./rpc";

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

/**
 * A head this far ahead means that a clock is wrong, here or at the node; decisions about expiry would be wrong too.
 */
const MAX_CLOCK_SKEW_SECONDS = 60;
/**
 * How long a seen block number is a lower bound for later reads. Equal to the default maximum head age, which takes
 * over from there.
 */
const MARK_LIFE_SECONDS = 60;
/** Retry delays for an endpoint that is behind: a load balancer may have chosen a node that is one block back. */
const CATCH_UP_DELAYS_MS = [100, 300, 600];

/** An answer that names its block. */
export interface Decided {
  readonly decision: Pick<Decision, "blockNumber" | "blockTimestamp">;
}

export interface Question<T extends Decided> {
  /** Default: the account contract. */
  readonly to?: Address;
  readonly data: string;
  readonly read: (data: string) => T;
  /** The answer must be of this block or a later one; need not be known when the first endpoint is asked. */
  readonly notBefore?: NotBefore;
}

type NotBefore = number | Promise<number>;

/** The endpoint has not reached the required block yet; a retry may succeed. */
class NotYetThere extends RpcFailure {}

export class Chain {
  readonly #endpoints: readonly RpcEndpoint[];
  readonly #options: ChainOptions;
  readonly #nowSeconds: () => number;
  #forwarder: Address | undefined;
  #hash: { readonly block: string; readonly hash: Promise<Hash32 | undefined> } | undefined;
  #highest = { block: 0n, at: -Infinity };
  #time = { seconds: 0n, readAt: -Infinity };
  #headUnderWay: Promise<bigint> | undefined;

  constructor(options: ChainOptions) {
    this.#options = options;
    this.#endpoints = options.rpcUrls.map((url) => new RpcEndpoint(url, options.timeoutMs));
    this.#nowSeconds = options.nowSeconds ?? (() => Date.now() / 1000);
  }

  /** Whether the key may run the action, with the PKP if one is named. @throws KeywrightError `chain_unavailable`. */
  async explain(key: KeyId | AccountId, action: ActionHash, pkp: PkpId | undefined): Promise<Decision> {
    const { decision } = await this.ask({
      data: encodeQuestion(key, action, pkp),
      read: (data) => ({ decision: decodeDecision(data) }),
    });
    return decision;
  }

  /**
   * As `explain`, plus what the contract stores about the key and the decision about `ahead`, at the newest block and
   * not before `notBefore`.
   * @throws KeywrightError `chain_unavailable`.
   */
  admit(
    key: KeyId | AccountId,
    action: ActionHash,
    { pkpId, ahead, notBefore }: { pkpId?: PkpId | undefined; ahead?: PkpId | undefined; notBefore: NotBefore },
  ): Promise<Admission> {
    return this.ask({
      data: encodeAdmission(key, action, pkpId, ahead),
      read: (data) => decodeAdmission(key, data, ahead !== undefined),
      notBefore,
    });
  }

  /** The account of an account id or key id; undefined if the contract never knew it. */
  async accountOf(id: KeyId | AccountId): Promise<AccountId | undefined> {
    const { key } = await this.admit(id, ZERO_HASH as ActionHash, { notBefore: 0 });
    return key?.accountId;
  }

  /** Any view, read as a decision is. @throws KeywrightError `chain_unavailable`. */
  async ask<T extends Decided>(question: Question<T>): Promise<T> {
    for (const delayMs of CATCH_UP_DELAYS_MS) {
      const answer = await this.#read(question);
      if (answer !== "behind") return this.#accept(answer);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
    const last = await this.#read(question);
    if (last === "behind") throw unavailable("The chain's head is behind a block that was seen before.");
    return this.#accept(last);
  }

  /**
   * The newest block, read the same way as a decision, so that a stale head, a backward head or a missing contract
   * fails here as it would in a run.
   * @throws KeywrightError `chain_unavailable`.
   */
  async head(): Promise<bigint> {
    return (await this.explain(ZERO_HASH as KeyId, ZERO_HASH as ActionHash, undefined)).blockNumber;
  }

  /**
   * Time of the newest block in seconds, as of the last answer if that came within `withinMs`. Never goes back. Read
   * once for all that ask meanwhile: guests can ask for it at no cost.
   * @throws KeywrightError `chain_unavailable`.
   */
  async time(withinMs: number): Promise<bigint> {
    if (performance.now() - this.#time.readAt > withinMs)
      await (this.#headUnderWay ??= this.head().finally(() => (this.#headUnderWay = undefined)));
    return this.#time.seconds;
  }

  /**
   * A reading on which the endpoints agree. An endpoint whose block is too old, or from the future, counts as failed:
   * the first one would keep the others from being asked.
   * @throws KeywrightError `chain_unavailable`.
   */
  async agreed<T extends Dated>(ask: Ask<T>): Promise<T> {
    let fault: string | undefined;
    const askOfNow: Ask<T> = async (endpoint, block) => {
      const value = await ask(endpoint, block);
      const found = this.#faultOfTime(value);
      if (found === undefined) return value;
      fault = found;
      throw new RpcFailure(found);
    };
    try {
      return await agreed(this.#endpoints, this.#options.quorum, askOfNow);
    } catch (error) {
      throw fault === undefined ? error : unavailable(fault, [error]);
    }
  }

  /**
   * Base fee of the newest block, in wei, however old that is if no endpoint has a newer one: it bounds the fees of
   * what may have to be sent for the chain to go on.
   * @throws KeywrightError `chain_unavailable`.
   */
  async baseFee(): Promise<bigint> {
    const ask = (endpoint: RpcEndpoint, block: BlockTag): ReturnType<RpcEndpoint["baseFee"]> => endpoint.baseFee(block);
    const { wei } = await this.agreed(ask).catch(() => agreed(this.#endpoints, this.#options.quorum, ask));
    return wei;
  }

  /**
   * Hash of a decision's block; undefined when the endpoints do not agree on a block of this number and time, as on
   * chains where contracts see another block number. Cached for the newest block: most runs share it.
   */
  blockHash({ blockNumber, blockTimestamp }: Decision): Promise<Hash32 | undefined> {
    const block = `${blockNumber}/${blockTimestamp}`;
    if (this.#hash?.block === block) return this.#hash.hash;
    const { quorum } = this.#options;
    const hash = agreed(this.#endpoints, quorum, (endpoint) => endpoint.hashOf(blockNumber, blockTimestamp)).then(
      (answer) => answer.hash,
      () => {
        if (this.#hash?.block === block) this.#hash = undefined;
        return undefined;
      },
    );
    this.#hash = { block, hash };
    return hash;
  }

  /** The contract's trusted forwarder. Cached: it is immutable. @throws KeywrightError `chain_unavailable`. */
  async forwarder(): Promise<Address> {
    return (this.#forwarder ??= addressOfWord(await this.#immutable(TRUSTED_FORWARDER_CALL, "forwarder")));
  }

  /** The commitment to the root key that the contract is bound to. @throws KeywrightError `chain_unavailable`. */
  async rootCommitment(): Promise<Hash32> {
    return (await this.#immutable(ROOT_COMMITMENT_CALL, "root commitment")) as Hash32;
  }

  /** A word that the contract never changes, on which enough endpoints agree. */
  async #immutable(call: string, name: string): Promise<string> {
    const { contractAddress, quorum } = this.#options;
    const ask = async (endpoint: RpcEndpoint): Promise<string> => {
      const word = (await endpoint.call(contractAddress, call, "latest")).toLowerCase();
      if (/^0x[0-9a-f]{64}$/.test(word)) return word;
      throw new RpcFailure(`the contract names no ${name}`);
    };
    const answers = (await Promise.allSettled(this.#endpoints.map(ask))).flatMap((answer) =>
      answer.status === "fulfilled" ? [answer.value] : [],
    );
    const agreedOn = answers.find((word) => answers.filter((other) => other === word).length >= quorum);
    if (agreedOn === undefined) throw unavailable(`Too few RPC endpoints agree on the contract's ${name}.`);
    return agreedOn;
  }

  /**
   * Requires every endpoint to be on the configured chain and the contract to have the expected key namespace. Throws
   * an Error that names the difference.
   */
  async requireNamespace(expected: Hash32): Promise<void> {
    const answers = await Promise.allSettled(
      this.#endpoints.map((endpoint) => this.#checkEndpoint(endpoint, expected)),
    );
    const wrong = answers.flatMap((answer) =>
      answer.status === "rejected" && answer.reason instanceof WrongChain ? [answer.reason] : [],
    );
    if (wrong[0] !== undefined) throw wrong[0];
    const working = answers.filter(({ status }) => status === "fulfilled").length;
    if (working < this.#options.quorum) {
      throw new Error(
        `only ${working} of ${answers.length} RPC endpoints answer and ${this.#options.quorum} must agree: ` +
          `${reasons(answers)}`,
      );
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()));
  }

  /**
   * An endpoint behind the newest block seen before the request counts as failed. Returns "behind" when too few remain.
   */
  async #read<T extends Decided>(question: Question<T>): Promise<T | "behind"> {
    const floor = this.#floor();
    let isBehind = false;
    const ask = async (endpoint: RpcEndpoint, block: BlockTag): Promise<Dated & { answer: T }> => {
      const answer = await this.#answerOf(endpoint, question, block).catch((error: unknown) => {
        isBehind ||= error instanceof NotYetThere;
        throw error;
      });
      const { blockNumber, blockTimestamp } = answer.decision;
      if (blockNumber >= floor) return { blockNumber, blockTimestamp, answer };
      isBehind = true;
      throw new RpcFailure("the endpoint is behind a block that was seen before");
    };
    try {
      return (await this.agreed(ask)).answer;
    } catch (error) {
      if (isBehind) return "behind";
      throw error;
    }
  }

  /**
   * An endpoint whose newest block precedes `notBefore` is asked again at that block: behind a load balancer another
   * node may have it. On some chains the block number inside contracts differs from the node's; there the newest block
   * is used.
   */
  async #answerOf<T extends Decided>(
    endpoint: RpcEndpoint,
    { to = this.#options.contractAddress, data, read, notBefore = 0 }: Question<T>,
    block: BlockTag,
  ): Promise<T> {
    const call = async (at: BlockTag): Promise<T> => readAnswer(read, await endpoint.call(to, data, at));
    const answer = await call(block);
    const wanted = BigInt(await notBefore);
    if (answer.decision.blockNumber >= wanted) return answer;
    // One that claims an older head would have the others agree with it there.
    if (block !== "latest") throw new RpcFailure("the block precedes that of the last write");
    const later = await call(wanted).catch((error: unknown) => {
      throw error instanceof RpcFailure
        ? new NotYetThere("the endpoint has not seen the block of the last write")
        : error;
    });
    return later.decision.blockNumber === wanted ? later : answer;
  }

  /** Raises the marks. The age is checked again: since the endpoint answered, others may have been waited for. */
  #accept<T extends Decided>(answer: T): T {
    const { blockNumber, blockTimestamp } = answer.decision;
    const fault = this.#faultOfTime(answer.decision);
    if (fault !== undefined) throw unavailable(fault);
    const seconds = blockTimestamp > this.#time.seconds ? blockTimestamp : this.#time.seconds;
    this.#time = { seconds, readAt: performance.now() };
    if (blockNumber >= this.#floor()) this.#highest = { block: blockNumber, at: this.#nowSeconds() };
    return answer;
  }

  /** Why a block of this time is too old, or from the future. */
  #faultOfTime({ blockTimestamp }: Pick<Dated, "blockTimestamp">): string | undefined {
    const { maxHeadAgeSeconds } = this.#options;
    if (maxHeadAgeSeconds === 0) return undefined;
    const age = this.#nowSeconds() - Number(blockTimestamp);
    if (age > maxHeadAgeSeconds)
      return `The chain's head is ${Math.floor(age)} seconds old; at most ${maxHeadAgeSeconds} are accepted.`;
    if (age < -MAX_CLOCK_SKEW_SECONDS)
      return `The chain's head is ${Math.floor(-age)} seconds ahead of this machine's clock.`;
    return undefined;
  }

  /**
   * The newest block seen recently. The mark expires unless confirmed: one absurd block number would otherwise stop
   * every decision permanently.
   */
  #floor(): bigint {
    return this.#nowSeconds() - this.#highest.at < MARK_LIFE_SECONDS ? this.#highest.block : 0n;
  }

  async #checkEndpoint(endpoint: RpcEndpoint, expected: Hash32): Promise<void> {
    const { chainId, contractAddress } = this.#options;
    const actual = await endpoint.chainId();
    if (actual !== chainId) throw new WrongChain(`an RPC endpoint is on chain ${actual}, but CHAIN_ID is ${chainId}`);
    const namespace = await endpoint.call(contractAddress, KEY_NAMESPACE_CALL, "latest");
    if (namespace.length !== expected.length)
      throw new WrongChain(`there is no AccountManager at ${contractAddress} on chain ${chainId}`);
    if (namespace.toLowerCase() !== expected) {
      throw new WrongChain(
        `the contract at ${contractAddress} has key namespace ${namespace}, this executor computes ${expected}: ` +
          "it would derive other keys",
      );
    }
  }
}

function addressOfWord(word: string): Address {
  const address = parseAddress(`0x${word.slice(-40)}`);
  if (address === undefined || !/^0x0{24}[0-9a-f]{40}$/i.test(word)) throw new RpcFailure("the answer is no address");
  return address;
}

function readAnswer<T>(read: (data: string) => T, data: string): T {
  try {
    return read(data);
  } catch (error) {
    throw new RpcFailure((error as Error).message);
  }
}

/** A configuration error that retries cannot fix: another chain or contract. */
export class WrongChain extends Error {
  override readonly name = "WrongChain";
}

function reasons(answers: readonly PromiseSettledResult<void>[]): string {
  return answers
    .flatMap((answer) => (answer.status === "rejected" ? [String((answer.reason as Error).message)] : []))
    .join("; ");
}
