/**
 * The list of endpoints as one: fails over, keeps off an endpoint that gave no answer for a moment, and never counts a refusal that is about our
 * transaction against an endpoint. Reads may name a block they must not be older than.
 */
import { KeywrightError } from "../../../protocol/errors";
import { Endpoint, type RpcCall, type RpcResult } from "../../../protocol/rpc/endpoint";
import { blamesEndpoint, isAboutTheCall, mayAnswerElsewhere, RpcError, type RpcFailure } from "../../../protocol/rpc/errors";

export interface RpcOptions {
  /** An endpoint that serves another chain is never asked. */
  readonly chainId: bigint;
  readonly urls: readonly string[];
  /** Longest one exchange may take. */
  readonly timeoutMs: number;
  /** Longest a call may take over all endpoints and tries. */
  readonly deadlineMs: number;
}

interface Member {
  readonly endpoint: Endpoint;
  failures: number;
  blockedUntil: number;
  head: number;
  servesOurChain: boolean;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 2_000;
const BETWEEN_ROUNDS_MS = 150;
const MAX_BATCH = 50;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export class RpcClient {
  readonly #members: readonly Member[];
  readonly #stopped = new AbortController();

  constructor(private readonly options: RpcOptions) {
    if (options.urls.length === 0) throw new TypeError("at least one RPC endpoint is needed");
    this.#members = options.urls.map((url) => ({
      endpoint: new Endpoint(url, { timeoutMs: options.timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES, maxBatch: MAX_BATCH }),
      failures: 0,
      blockedUntil: 0,
      head: 0,
      servesOurChain: false,
    }));
  }

  /** Asks the endpoints in turn until one answers. Throws RpcError when the contract refuses, `chain_unavailable` when nobody could answer in time. */
  async call<T>(method: string, params: readonly unknown[]): Promise<T> {
    return this.#untilAnswered(async (member) => (await member.endpoint.call(method, params)) as T);
  }

  /**
   * Several calls answered at one and the same block: the newest the endpoint knows of, and at least `minBlock`. Each call names that block, for an endpoint may be
   * many nodes, of which any answers any call. Asks at the newest block known so far and once more if there is a newer one. With `once` each endpoint is asked in
   * one round only, and the last refusal is thrown as it came.
   */
  async callAt(
    minBlock: number,
    callsAt: (block: string) => readonly RpcCall[],
    { once = false } = {},
  ): Promise<{ values: readonly unknown[]; blockNumber: number }> {
    return this.#untilAnswered(async (member) => {
      const guess = Math.max(minBlock, member.head);
      const first = await this.#atBlock(member, guess, callsAt);
      if (first.newest < minBlock) throw new RpcError("stale", `the endpoint stands at block ${first.newest}, before ${minBlock}`);
      if (first.newest <= guess && !first.answers.some(isStale)) return { values: first.answers.map(valueOf), blockNumber: guess };
      const { answers } = await this.#atBlock(member, first.newest, callsAt);
      return { values: answers.map(valueOf), blockNumber: first.newest };
    }, once);
  }

  async #atBlock(member: Member, block: number, callsAt: (block: string) => readonly RpcCall[]): Promise<{ newest: number; answers: readonly RpcResult[] }> {
    const calls = callsAt(`0x${block.toString(16)}`);
    const [head, ...answers] = await member.endpoint.callTogether([{ method: "eth_blockNumber", params: [] }, ...calls]);
    const newest = Number(valueOf(head));
    member.head = newest;
    return { newest, answers };
  }

  /** Calls about blocks up to `minHead`, long final: answered by an endpoint that says it has that block. */
  async callBelow(minHead: number, calls: readonly RpcCall[]): Promise<readonly unknown[]> {
    return this.#untilAnswered(async (member) => {
      const [head, ...answers] = await member.endpoint.callTogether([{ method: "eth_blockNumber", params: [] }, ...calls]);
      if (Number(valueOf(head)) < minHead) throw new RpcError("stale", `the endpoint stands before block ${minHead}`);
      return answers.map(valueOf);
    });
  }

  /**
   * Hands signed bytes to the endpoints in turn until one takes or knows them: undefined. Else the failure that says most: `transport` when an endpoint
   * gave no answer, so that it may have them all the same; then whatever a node said about the transaction.
   */
  async broadcast(raw: string): Promise<RpcFailure | undefined> {
    const failures: RpcFailure[] = [];
    for (const member of this.#inOrder()) {
      try {
        await this.#ask(member, (asked) => asked.endpoint.call("eth_sendRawTransaction", [raw]));
        return undefined;
      } catch (error) {
        const { failure } = asRpcError(error);
        if (failure === "already_known") return undefined;
        failures.push(failure);
      }
    }
    return failures.find((failure) => failure === "transport") ?? failures.find((failure) => !mayAnswerElsewhere(failure)) ?? failures[0];
  }

  /** Several calls in one exchange, each answered by any node. */
  async callTogether(calls: readonly RpcCall[]): Promise<readonly unknown[]> {
    return this.#untilAnswered(async (member) => (await member.endpoint.callTogether(calls)).map(valueOf));
  }

  /** One round over the endpoints in turn until one gives an answer that `accepts` takes; undefined when none does. Refusals count as no answer. */
  async firstAccepted<T>(method: string, params: readonly unknown[], accepts: (answer: T) => boolean): Promise<T | undefined> {
    for (const member of this.#inOrder()) {
      try {
        const answer = (await this.#ask(member, (asked) => asked.endpoint.call(method, params))) as T;
        if (accepts(answer)) return answer;
      } catch {
        // The next endpoint may know.
      }
    }
    return undefined;
  }

  /** One round over all endpoints, good or bad, each asked once: for questions where one node's word is not enough. */
  async callEverywhere<T>(method: string, params: readonly unknown[]): Promise<readonly (T | RpcError)[]> {
    return Promise.all(
      this.#members.map(async (member) => {
        try {
          return (await this.#ask(member, (asked) => asked.endpoint.call(method, params))) as T;
        } catch (error) {
          return asRpcError(error);
        }
      }),
    );
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#members.map((member) => member.endpoint.close()));
  }

  async #untilAnswered<T>(ask: (member: Member) => Promise<T>, once = false): Promise<T> {
    const deadline = Date.now() + this.options.deadlineMs;
    let last: RpcError | undefined;
    do {
      for (const member of this.#inOrder()) {
        try {
          return await this.#ask(member, ask);
        } catch (error) {
          last = asRpcError(error);
          if (isAboutTheCall(last.failure)) throw last;
        }
      }
      if (once && last !== undefined) throw last;
    } while (await this.#pause(deadline));
    throw chainUnavailable(last ?? new RpcError("transport", "not asked"));
  }

  async #ask<T>(member: Member, ask: (member: Member) => Promise<T>): Promise<T> {
    try {
      if (!member.servesOurChain) await this.#requireOurChain(member);
      const answer = await ask(member);
      member.failures = 0;
      member.blockedUntil = 0;
      return answer;
    } catch (error) {
      if (blamesEndpoint(asRpcError(error).failure)) this.#block(member);
      throw error;
    }
  }

  async #requireOurChain(member: Member): Promise<void> {
    const chainId = BigInt((await member.endpoint.call("eth_chainId", [])) as string);
    if (chainId !== this.options.chainId) throw new RpcError("transport", `an endpoint serves chain ${chainId} instead of ${this.options.chainId}`);
    member.servesOurChain = true;
  }

  #block(member: Member): void {
    member.failures += 1;
    member.blockedUntil = Date.now() + Math.min(FIRST_PAUSE_MS * 2 ** (member.failures - 1), LONGEST_PAUSE_MS);
  }

  /** Good endpoints in the configured order, then the blocked ones: a blocked endpoint is asked only when no good one could answer. */
  #inOrder(): readonly Member[] {
    const now = Date.now();
    const blocked = (member: Member): boolean => member.blockedUntil > now;
    return [...this.#members.filter((member) => !blocked(member)), ...this.#members.filter(blocked)];
  }

  async #pause(deadline: number): Promise<boolean> {
    const left = deadline - Date.now();
    if (left <= 0 || this.#stopped.signal.aborted) return false;
    await new Promise((resolve) => setTimeout(resolve, Math.min(BETWEEN_ROUNDS_MS, left)));
    return !this.#stopped.signal.aborted;
  }
}

const isStale = (result: RpcResult): boolean => "error" in result && result.error.failure === "stale";

function valueOf(result: RpcResult | undefined): unknown {
  if (result === undefined) throw new RpcError("transport", "the endpoint left a call unanswered");
  if ("error" in result) throw result.error;
  return result.value;
}

function asRpcError(error: unknown): RpcError {
  return error instanceof RpcError ? error : new RpcError("transport", error instanceof Error ? error.message : String(error));
}

function chainUnavailable(cause: RpcError): KeywrightError {
  return new KeywrightError(
    "chain_unavailable",
    "The chain cannot be reached at the moment; the same request may succeed later.",
    {},
    { cause, retryAfterSeconds: 2 },
  );
}

export function failureOf(error: unknown): RpcFailure | undefined {
  return error instanceof RpcError ? error.failure : undefined;
}
