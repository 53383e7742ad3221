/** The relayer's one way to the executor: typed calls over HTTP on its Unix socket. Source: protocol/executor.ts. */
import { Agent, request } from "undici";
import { KeywrightError, isErrorCode } from "../protocol/errors";
import { EXECUTOR_CALLS, REQUEST_ID_HEADER, executorErrorSchema, type ExecutorAnswer, type ExecutorCall, type ExecutorRequest } from "../protocol/executor";
import { MAX_WALL_MS } from "../protocol/limits";

const CALL_TIMEOUT_MS = 30_000;
/** Queueing, fetching code by CID and start-up of a child come on top of the wall time. */
const RUN_MARGIN_MS = 120_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface CallContext {
  readonly requestId?: string;
  readonly signal?: AbortSignal;
}

/** What the routes need of the executor; `ExecutorClient` is the real one. */
export interface Executor {
  call<C extends ExecutorCall>(name: C, input: ExecutorRequest<C>, context?: CallContext): Promise<ExecutorAnswer<C>>;
}

export class ExecutorClient implements Executor {
  readonly #agent: Agent;
  constructor(socketPath: string, options: { connections?: number } = {}) {
    this.#agent = new Agent({
      connect: { socketPath },
      connections: options.connections ?? 256,
      headersTimeout: MAX_WALL_MS + RUN_MARGIN_MS,
      bodyTimeout: CALL_TIMEOUT_MS,
      maxResponseSize: MAX_ANSWER_BYTES,
    });
  }

  /**
   * @throws KeywrightError what the executor refused with; `executor_unavailable` when it cannot be reached, is too slow or answers nonsense.
   */
  async call<C extends ExecutorCall>(name: C, input: ExecutorRequest<C>, context: CallContext = {}): Promise<ExecutorAnswer<C>> {
    const { statusCode, text } = await this.#send(name, JSON.stringify(input), context);
    if (statusCode !== 200) throw refusal(text);
    const parsed = EXECUTOR_CALLS[name].answer.safeParse(parseJson(text));
    if (!parsed.success) throw unavailable("The executor gave an answer that cannot be read.", parsed.error);
    return parsed.data as ExecutorAnswer<C>;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(name: ExecutorCall, body: string, context: CallContext): Promise<{ statusCode: number; text: string }> {
    const deadline = AbortSignal.timeout(name === "run" ? MAX_WALL_MS + RUN_MARGIN_MS : CALL_TIMEOUT_MS);
    try {
      const response = await request(`http://executor${EXECUTOR_CALLS[name].path}`, {
        method: "POST",
        dispatcher: this.#agent,
        signal: context.signal === undefined ? deadline : AbortSignal.any([deadline, context.signal]),
        headers: { "content-type": "application/json", ...(context.requestId === undefined ? {} : { [REQUEST_ID_HEADER]: context.requestId }) },
        body,
      });
      return { statusCode: response.statusCode, text: await response.body.text() };
    } catch (error) {
      throw unavailable("The executor cannot be reached at the moment.", error);
    }
  }
}

function refusal(text: string): KeywrightError {
  const parsed = executorErrorSchema.safeParse(parseJson(text));
  if (!parsed.success || !isErrorCode(parsed.data.code)) return unavailable("The executor gave an answer that cannot be read.", undefined);
  const { code, detail, facts = {}, retryAfterSeconds } = parsed.data;
  if (code === "internal_error") return unavailable("The executor failed; nothing was charged.", new Error(detail));
  return new KeywrightError(code, detail, facts, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}

const unavailable = (detail: string, cause: unknown): KeywrightError => new KeywrightError("executor_unavailable", detail, {}, { cause, retryAfterSeconds: 2 });

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
