/**
 * One JSON-RPC endpoint. Calls of the same tick are sent as one batch; the deadline of an HTTP exchange also covers
 * reading the body.
 */
import { Pool } from "undici";
import { countsAgainstEndpoint, classifyRpcError, RpcError, type RpcFailure } from "./errors";
import { post } from "./exchange";
import { parseJson } from "../json";

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}
export type RpcResult = { readonly value: unknown } | { readonly error: RpcError };

/** Calls to be answered by one node, in order and in one exchange. */
interface Queued {
  readonly calls: readonly RpcCall[];
  readonly resolve: (results: readonly RpcResult[]) => void;
}

export interface EndpointOptions {
  /** Deadline of one exchange. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  /** Maximum number of calls in a batch; calls passed together are never split. 1 = no batching. */
  readonly maxBatch: number;
  /** Called after each exchange with its duration and, if it counts against the endpoint, the reason. */
  readonly onExchange?: (seconds: number, failure: RpcFailure | undefined) => void;
}

/** To one endpoint. What does not find one free waits, and its time runs. */
export const MAX_CONNECTIONS = 16;

export class Endpoint {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  #queue: Queued[] = [];
  readonly #options: EndpointOptions;

  constructor(url: string, options: EndpointOptions) {
    this.#options = options;
    const { timeoutMs, maxAnswerBytes } = options;
    const { origin, pathname, search, username, password } = new URL(url);
    const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64");
    this.#headers = {
      "content-type": "application/json",
      accept: "application/json",
      ...(username === "" ? {} : { authorization: `Basic ${basic}` }),
    };
    this.#path = pathname + search;
    this.#pool = new Pool(origin, {
      connections: MAX_CONNECTIONS,
      maxResponseSize: maxAnswerBytes,
      connectTimeout: timeoutMs,
      keepAliveTimeout: 30_000,
    });
  }

  async call(method: string, params: readonly unknown[]): Promise<unknown> {
    const [result = missing()] = await this.callTogether([{ method, params }]);
    if ("error" in result) throw result.error;
    return result.value;
  }

  /** Sends several calls to one node, in order, in one exchange. Never throws. */
  callTogether(calls: readonly RpcCall[]): Promise<readonly RpcResult[]> {
    if (this.#options.maxBatch === 1) return this.#exchange(calls);
    return new Promise((resolve) => {
      this.#queue.push({ calls, resolve });
      if (this.#queue.length === 1) setImmediate(() => this.#flush());
    });
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #flush(): void {
    let batch: Queued[] = [];
    for (const queued of this.#queue) {
      if (batch.length > 0 && sizeOf(batch) + queued.calls.length > this.#options.maxBatch) {
        void this.#send(batch);
        batch = [];
      }
      batch.push(queued);
    }
    this.#queue = [];
    void this.#send(batch);
  }

  /** Identical calls of one tick are sent once. */
  async #send(batch: readonly Queued[]): Promise<void> {
    const asked = new Map<string, { readonly place: number; readonly call: RpcCall }>();
    const places = batch.map(({ calls }) =>
      calls.map((call) => {
        const text = `${call.method}${JSON.stringify(call.params)}`;
        const known = asked.get(text) ?? { place: asked.size, call };
        asked.set(text, known);
        return known.place;
      }),
    );
    const results = await this.#exchange([...asked.values()].map(({ call }) => call));
    batch.forEach(({ resolve }, index) => resolve((places[index] ?? []).map((place) => results[place] ?? missing())));
  }

  /** Never throws: a failure of the exchange is the result of each of its calls. */
  async #exchange(calls: readonly RpcCall[]): Promise<readonly RpcResult[]> {
    const begun = performance.now();
    const results = await this.#answers(calls);
    const failures = results.flatMap((result) =>
      "error" in result && countsAgainstEndpoint(result.error.failure) ? [result.error.failure] : [],
    );
    this.#options.onExchange?.((performance.now() - begun) / 1_000, failures[0]);
    return results;
  }

  async #answers(calls: readonly RpcCall[]): Promise<readonly RpcResult[]> {
    try {
      return readAnswers(calls, await this.#post(calls));
    } catch (error) {
      const failure =
        error instanceof RpcError ? error : new RpcError("transport", describe(error, this.#options.timeoutMs));
      return calls.map(() => ({ error: failure }));
    }
  }

  async #post(calls: readonly RpcCall[]): Promise<unknown> {
    const messages = calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
    const { statusCode, text } = await post(this.#pool, {
      path: this.#path,
      headers: this.#headers,
      body: JSON.stringify(messages.length === 1 ? messages[0] : messages),
      timeoutMs: this.#options.timeoutMs,
    });
    if (statusCode === 429) throw new RpcError("rate_limited", "HTTP 429");
    const answer = parseJson(text);
    // Some nodes send a JSON-RPC error with status 400 or 500, which is more specific than the status.
    if (answer === undefined || (statusCode !== 200 && !isRpcAnswer(answer)))
      throw new RpcError("transport", `HTTP ${statusCode}`);
    return answer;
  }
}

/** Never contains the endpoint's URL, which may carry an API key. */
function describe(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "the connection failed";
}

const sizeOf = (batch: readonly Queued[]): number => batch.reduce((total, { calls }) => total + calls.length, 0);

function isRpcAnswer(answer: unknown): boolean {
  const first: unknown = Array.isArray(answer) ? answer[0] : answer;
  return typeof first === "object" && first !== null && "jsonrpc" in first;
}

interface RpcMessage {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

function readAnswers(calls: readonly RpcCall[], answer: unknown): readonly RpcResult[] {
  if (calls.length === 1)
    return [readOne(Array.isArray(answer) ? (answer as RpcMessage[])[0] : (answer as RpcMessage))];
  if (!Array.isArray(answer)) return calls.map(() => readOne(answer as RpcMessage));
  const byId = new Map((answer as RpcMessage[]).map((message) => [message.id, message]));
  return calls.map((_, id) => readOne(byId.get(id)));
}

function readOne(message: RpcMessage | undefined): RpcResult {
  if (typeof message !== "object" || message === null) return missing();
  if (message.error !== undefined && message.error !== null) return { error: classifyRpcError(message.error) };
  return message.result === undefined ? missing() : { value: message.result };
}

function missing(): RpcResult {
  return { error: new RpcError("transport", "the endpoint left a call unanswered") };
}
