/**
 * Treats the list of endpoints as one: fails over, briefly avoids endpoints that failed, and never blames an endpoint
 * for refusing a transaction. Reads may require a minimum block. Every exchange also asks which chain the endpoint is
 * on: an answer counts only if the chain id and the hash of a final block that this service knows are ours.
 */
import { KeywrightError } from "../../../protocol/errors";
import { Endpoint, type EndpointOptions, type RpcCall, type RpcResult } from "../../../protocol/rpc/endpoint";
import {
  countsAgainstEndpoint,
  isAboutTheCall,
  lacksGas,
  mayAnswerElsewhere,
  RpcError,
  type RpcFailure,
} from "../../../protocol/rpc/errors";
import { within } from "../../../protocol/within";
import { countIn, quantityOf } from "./quantities";

/** One exchange with an endpoint, identified by its index in the list, since its URL may contain a key. */
export interface ExchangeFacts {
  /** From 1 on. */
  readonly endpoint: number;
  readonly seconds: number;
  /** The endpoint's failure; undefined for a good response. */
  readonly failure: RpcFailure | undefined;
}

export interface EndpointHead {
  readonly endpoint: number;
  /** Undefined when it does not answer. */
  readonly head: number | undefined;
  /** Its last answer was of another chain; it is not used until it answers for ours. */
  readonly isOfOtherChain: boolean;
}

/** A block that is final on the chain of this service. */
export interface KnownBlock {
  readonly number: number;
  readonly hash: string;
}

/** How this client speaks to one endpoint. */
export type EndpointPort = Pick<Endpoint, "callTogether" | "close">;
export type Connect = (url: string, options: EndpointOptions) => EndpointPort;

export interface RpcOptions {
  /** Endpoints that serve another chain are not used. */
  readonly chainId: bigint;
  readonly urls: readonly string[];
  /** Maximum duration of one exchange. */
  readonly timeoutMs: number;
  /** Maximum duration of a call over all endpoints and attempts. */
  readonly deadlineMs: number;
  readonly onExchange?: ((facts: ExchangeFacts) => void) | undefined;
  /** An endpoint whose head has not moved for so long, while another's has, is asked after the others; default 30 s. */
  readonly stillForMs?: number | undefined;
  /** Default: JSON-RPC over HTTP. */
  readonly connect?: Connect | undefined;
}

interface Member {
  readonly endpoint: EndpointPort;
  failures: number;
  blockedUntil: number;
  head: number;
  isOfOtherChain: boolean;
  /** Its head when all were compared, and when that was another than before. */
  compared: number;
  movedAt: number;
  /** Another is ahead of it and has moved on meanwhile. */
  standsStill: boolean;
}

const STILL_FOR_MS = 30_000;
/** How often heads are compared in that time. */
const COMPARISONS = 3;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 2_000;
const BETWEEN_ROUNDS_MS = 150;
const MAX_BATCH = 50;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const httpEndpoint: Connect = (url, options) => new Endpoint(url, options);

export class RpcClient {
  readonly #members: readonly Member[];
  readonly #stopped = new AbortController();
  readonly #comparing: NodeJS.Timeout | undefined;
  #ancestor: KnownBlock | undefined;
  readonly #options: RpcOptions;

  constructor(options: RpcOptions) {
    this.#options = options;
    if (options.urls.length === 0) throw new TypeError("at least one RPC endpoint is needed");
    const { timeoutMs, onExchange = () => undefined, connect = httpEndpoint } = options;
    this.#members = options.urls.map((url, index) => ({
      endpoint: connect(url, {
        timeoutMs,
        maxAnswerBytes: MAX_ANSWER_BYTES,
        maxBatch: MAX_BATCH,
        onExchange: (seconds, failure) => onExchange({ endpoint: index + 1, seconds, failure }),
      }),
      failures: 0,
      blockedUntil: 0,
      head: 0,
      isOfOtherChain: false,
      compared: 0,
      movedAt: 0,
      standsStill: false,
    }));
    if (options.urls.length === 1) return;
    const { stillForMs = STILL_FOR_MS } = options;
    const everyMs = stillForMs / COMPARISONS;
    this.#comparing = setInterval(() => void this.#compareHeads(everyMs, stillForMs), everyMs).unref();
  }

  /** From now on, endpoints that have another block of this number are not used. */
  know(ancestor: KnownBlock | undefined): void {
    this.#ancestor = ancestor;
  }

  /** True while every endpoint that answers is on another chain. */
  get isOfOtherChain(): boolean {
    return this.#members.some(({ isOfOtherChain }) => isOfOtherChain) && this.#members.every(isUseless);
  }

  /**
   * Tries the endpoints in turn until one answers. Throws RpcError when the contract refuses, `chain_unavailable` when
   * none answered in time.
   */
  async call<T>(method: string, params: readonly unknown[]): Promise<T> {
    return this.#untilAnswered(async (member) => (await this.#one(member, method, params)) as T);
  }

  /**
   * Several calls at one block: the newest the endpoint knows, and at least `minBlock`. Each call names that block,
   * since an endpoint may consist of many nodes and any of them may answer. Asks at the newest block known so far, and
   * again if there is a newer one. With `once`, there is a single round over the endpoints and the last error is thrown
   * unchanged.
   */
  async callAt(
    minBlock: number,
    callsAt: (block: string) => readonly RpcCall[],
    { once = false } = {},
  ): Promise<{ values: readonly unknown[]; blockNumber: number }> {
    return this.#untilAnswered(async (member) => {
      const guess = Math.max(minBlock, member.head);
      const first = await this.#atBlock(member, guess, callsAt);
      if (first.newest < minBlock)
        throw new RpcError("stale", `the endpoint is at block ${first.newest}, before ${minBlock}`);
      if (first.newest <= guess && !first.answers.some(isStale))
        return { values: first.answers.map(valueOf), blockNumber: guess };
      const { answers } = await this.#atBlock(member, first.newest, callsAt);
      return { values: answers.map(valueOf), blockNumber: first.newest };
    }, once);
  }

  async #atBlock(
    member: Member,
    block: number,
    callsAt: (block: string) => readonly RpcCall[],
  ): Promise<{ newest: number; answers: readonly RpcResult[] }> {
    const calls = callsAt(quantityOf(block));
    const [head, ...answers] = await this.#together(member, [{ method: "eth_blockNumber", params: [] }, ...calls]);
    const newest = countIn(valueOf(head));
    member.head = newest;
    return { newest, answers };
  }

  /**
   * Calls about final blocks up to `minHead`, answered by an endpoint that reports having that block. `once` as in
   * `callAt`.
   */
  async callBelow(minHead: number, calls: readonly RpcCall[], { once = false } = {}): Promise<readonly unknown[]> {
    return this.#untilAnswered(async (member) => {
      const [head, ...answers] = await this.#together(member, [{ method: "eth_blockNumber", params: [] }, ...calls]);
      if (countIn(valueOf(head)) < minHead) throw new RpcError("stale", `the endpoint is before block ${minHead}`);
      return answers.map(valueOf);
    }, once);
  }

  /**
   * Sends signed bytes to the endpoints in turn until one accepts or already knows them: undefined. Otherwise the most
   * significant failure: `transport` if an endpoint did not answer, since it may have them; then what a node said about
   * the transaction. With `everywhere`, all endpoints get them: one that accepts may keep them to itself.
   */
  async broadcast(raw: string, { everywhere = false } = {}): Promise<RpcFailure | undefined> {
    const failures: RpcFailure[] = [];
    let isAccepted = false;
    for (const member of this.#inOrder()) {
      const failure = await this.#send(member, raw);
      if (failure !== undefined) failures.push(failure);
      else if (everywhere) isAccepted = true;
      else return undefined;
    }
    if (isAccepted) return undefined;
    return (
      failures.find((failure) => failure === "transport") ??
      failures.find((failure) => !mayAnswerElsewhere(failure)) ??
      failures[0]
    );
  }

  /** Undefined if the endpoint accepts or already knows them. */
  async #send(member: Member, raw: string): Promise<RpcFailure | undefined> {
    try {
      await this.#ask(member, (asked) => this.#one(asked, "eth_sendRawTransaction", [raw]));
      return undefined;
    } catch (error) {
      const { failure } = asRpcError(error);
      return failure === "already_known" ? undefined : failure;
    }
  }

  /** Several calls in one exchange, each answered by any node, without a minimum block. */
  async callTogether(calls: readonly RpcCall[]): Promise<readonly unknown[]> {
    return this.#untilAnswered(async (member) => (await this.#together(member, calls)).map(valueOf));
  }

  /**
   * One round over the endpoints until `accepts` is true for a response; undefined if it never is. Errors count as no
   * response.
   */
  async firstAccepted<T>(
    method: string,
    params: readonly unknown[],
    accepts: (answer: T) => boolean,
  ): Promise<T | undefined> {
    for (const member of this.#inOrder()) {
      try {
        const answer = (await this.#ask(member, (asked) => this.#one(asked, method, params))) as T;
        if (accepts(answer)) return answer;
      } catch {
        // Ask the next endpoint.
      }
    }
    return undefined;
  }

  /**
   * Asks every endpoint once, including blocked ones: for questions on which no single node is trusted. An answer that
   * `read` throws at is a failure of its endpoint.
   */
  async callEverywhere<T>(
    method: string,
    params: readonly unknown[],
    read: (answer: unknown) => T,
  ): Promise<readonly (T | RpcError)[]> {
    return Promise.all(
      this.#members.map(async (member) => {
        try {
          return await this.#ask(member, async (asked) => read(await this.#one(asked, method, params)));
        } catch (error) {
          return asRpcError(error);
        }
      }),
    );
  }

  /** The newest block of each endpoint, including those unused while better ones answer. */
  async heads(withinMs: number): Promise<readonly EndpointHead[]> {
    return Promise.all(
      this.#members.map(async (member, index): Promise<EndpointHead> => {
        const asked = this.#ask(member, (each) => this.#one(each, "eth_blockNumber", []))
          .then(countIn)
          .catch(() => undefined);
        const head = await within(withinMs, asked, () => undefined);
        return { endpoint: index + 1, head, isOfOtherChain: member.isOfOtherChain };
      }),
    );
  }

  /** Finds the endpoints that answer, but stand still for so long while another moves on. */
  async #compareHeads(withinMs: number, stillForMs: number): Promise<void> {
    const heads = await this.heads(withinMs);
    const now = performance.now();
    for (const [index, member] of this.#members.entries()) {
      const { head = member.compared } = heads[index] ?? {};
      // One that goes back, as behind an address with several nodes, has not moved on.
      if (head > member.compared) Object.assign(member, { compared: head, movedAt: now });
    }
    for (const member of this.#members)
      member.standsStill = this.#members.some(
        ({ compared, movedAt }) => compared > member.compared && movedAt - member.movedAt > stillForMs,
      );
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    clearInterval(this.#comparing);
    await Promise.all(this.#members.map((member) => member.endpoint.close()));
  }

  async #untilAnswered<T>(ask: (member: Member) => Promise<T>, once = false): Promise<T> {
    const deadline = performance.now() + this.#options.deadlineMs;
    let last: RpcError | undefined;
    do {
      let refusal: RpcError | undefined;
      for (const member of this.#inOrder()) {
        // Endpoints differ in how much gas they give a call; one that did not answer lately is not waited for.
        if (refusal !== undefined && isBlocked(member)) continue;
        try {
          return await this.#ask(member, ask);
        } catch (error) {
          last = asRpcError(error);
          if (!isAboutTheCall(last.failure)) continue;
          if (!lacksGas(last)) throw last;
          refusal = last;
        }
      }
      if (refusal !== undefined) throw refusal;
      if (once && last !== undefined) throw last;
    } while (await this.#pause(deadline));
    throw chainUnavailable(last ?? new RpcError("transport", "not asked"));
  }

  async #ask<T>(member: Member, ask: (member: Member) => Promise<T>): Promise<T> {
    try {
      const answer = await ask(member);
      member.failures = 0;
      member.blockedUntil = 0;
      return answer;
    } catch (error) {
      if (countsAgainstEndpoint(asRpcError(error).failure)) this.#block(member);
      throw error;
    }
  }

  async #one(member: Member, method: string, params: readonly unknown[]): Promise<unknown> {
    return valueOf((await this.#together(member, [{ method, params }]))[0]);
  }

  /** Asks in one exchange, and together with it which chain the endpoint is on. */
  async #together(member: Member, calls: readonly RpcCall[]): Promise<readonly RpcResult[]> {
    const ancestor = this.#ancestor;
    const identity = ancestor === undefined ? [ITS_CHAIN] : [ITS_CHAIN, blockOf(ancestor)];
    const results = await member.endpoint.callTogether([...identity, ...calls]);
    const chainId = BigInt(valueOf(results[0]) as string);
    if (chainId !== this.#options.chainId)
      throw otherChain(member, `an endpoint serves chain ${chainId} instead of ${this.#options.chainId}`);
    if (ancestor !== undefined) checkAncestor(member, ancestor, results[1]);
    member.isOfOtherChain = false;
    return results.slice(identity.length);
  }

  #block(member: Member): void {
    member.failures += 1;
    member.blockedUntil = performance.now() + Math.min(FIRST_PAUSE_MS * 2 ** (member.failures - 1), MAX_PAUSE_MS);
  }

  /** Healthy endpoints in configured order, then those that stand still, then blocked ones. */
  #inOrder(): readonly Member[] {
    const rank = (member: Member): number => (isBlocked(member) ? 2 : member.standsStill ? 1 : 0);
    return [...this.#members].sort((one, other) => rank(one) - rank(other));
  }

  async #pause(deadline: number): Promise<boolean> {
    const left = deadline - performance.now();
    if (left <= 0 || this.#stopped.signal.aborted) return false;
    await new Promise((resolve) => setTimeout(resolve, Math.min(BETWEEN_ROUNDS_MS, left)));
    return !this.#stopped.signal.aborted;
  }
}

const ITS_CHAIN: RpcCall = { method: "eth_chainId", params: [] };
const blockOf = ({ number }: KnownBlock): RpcCall => ({
  method: "eth_getBlockByNumber",
  params: [quantityOf(number), false],
});

const isBlocked = ({ blockedUntil }: Member): boolean => blockedUntil > performance.now();

const isUseless = ({ isOfOtherChain, failures }: Member): boolean => isOfOtherChain || failures > 0;

function otherChain(member: Member, message: string): RpcError {
  member.isOfOtherChain = true;
  return new RpcError("other_chain", message);
}

/** A node that cannot read the block says nothing about its chain; one that has a different block does. */
function checkAncestor(member: Member, { number, hash }: KnownBlock, answer: RpcResult | undefined): void {
  if (answer === undefined || "error" in answer) return;
  const block = answer.value as { readonly hash: string } | null;
  if (block === null) throw new RpcError("stale", `the endpoint is before block ${number}, which is final`);
  if (block.hash !== hash) throw otherChain(member, `an endpoint has another block ${number} than the final one`);
}

const isStale = (result: RpcResult): boolean => "error" in result && result.error.failure === "stale";

function valueOf(result: RpcResult | undefined): unknown {
  if (result === undefined) throw new RpcError("transport", "the endpoint left a call unanswered");
  if ("error" in result) throw result.error;
  return result.value;
}

function asRpcError(error: unknown): RpcError {
  return error instanceof RpcError
    ? error
    : new RpcError("transport", error instanceof Error ? error.message : String(error));
}

function chainUnavailable(cause: RpcError): KeywrightError {
  return new KeywrightError(
    "chain_unavailable",
    "The chain cannot be reached at the moment; the same request may succeed later.",
    {},
    { cause, retryAfterSeconds: 2 },
  );
}
