/** The relayer's one way to the executor: typed calls over HTTP on its Unix socket. Source: protocol/executor.ts. */
import { Readable } from "node:stream";
import { Agent, request } from "undici";
import type { z } from "zod";
import { KeywrightError, isErrorCode } from "../protocol/errors";
import {
  EXECUTOR_CALLS,
  REQUEST_ID_HEADER,
  executorErrorSchema,
  type ExecutorAnswer,
  type ExecutorCall,
  type ExecutorRequest,
  type runStartSchema,
} from "../protocol/executor";
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
  /** Has the executor look into a run that is still to be paid for. */
  prepareRun(input: Omit<ExecutorRequest<"run">, "limitMs">, context?: CallContext): PreparedRun;
}

/** A run the executor is looking into. One of the two must be called. */
export interface PreparedRun {
  /** Lets it begin, for this long at most. @throws KeywrightError as `Executor.call` does. */
  start(limitMs: number): Promise<ExecutorAnswer<"run">>;
  /** False as long as it is certain that no code has run: before `start`, after a refusal, and where the executor could not be reached before. */
  readonly mayHaveRun: boolean;
  /** It will not be. */
  abandon(): void;
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
    const content = JSON.stringify(input);
    return answerOf(name, await this.#send(name, { content, bytes: Buffer.byteLength(content) }, context));
  }

  prepareRun(input: Omit<ExecutorRequest<"run">, "limitMs">, context: CallContext = {}): PreparedRun {
    const abandoned = new AbortController();
    let pay: (limitMs: number) => void = () => undefined;
    const paid = new Promise<number>((resolve) => (pay = resolve));
    const run = { hasEnded: false, mayHaveRun: false };
    const answer = this.#send("run", inTwoParts(input, paid), { ...context, signal: abandoned.signal }).then((received) => {
      run.mayHaveRun &&= !isRefusal(received);
      return answerOf("run", received);
    });
    // Looked at by whoever starts it, or by nobody.
    answer.catch(() => (run.hasEnded = true));
    return {
      start: (limitMs) => {
        run.mayHaveRun = !run.hasEnded;
        pay(limitMs);
        return answer;
      },
      abandon: () => abandoned.abort(),
      get mayHaveRun() {
        return run.mayHaveRun;
      },
    };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(name: ExecutorCall, body: Body, context: CallContext): Promise<Received> {
    const deadline = AbortSignal.timeout(name === "run" ? MAX_WALL_MS + RUN_MARGIN_MS : CALL_TIMEOUT_MS);
    try {
      const response = await request(`http://executor${EXECUTOR_CALLS[name].path}`, {
        method: "POST",
        dispatcher: this.#agent,
        signal: context.signal === undefined ? deadline : AbortSignal.any([deadline, context.signal]),
        headers: {
          "content-type": "application/json",
          "content-length": String(body.bytes),
          ...(context.requestId === undefined ? {} : { [REQUEST_ID_HEADER]: context.requestId }),
        },
        body: body.content,
      });
      return { statusCode: response.statusCode, text: await response.body.text() };
    } catch (error) {
      throw unavailable("The executor cannot be reached at the moment.", error);
    }
  }
}

interface Body {
  readonly content: string | Readable;
  readonly bytes: number;
}
interface Received {
  readonly statusCode: number;
  readonly text: string;
}

/** As much as the second part ever takes; spaces fill it up, so that the length of the whole is known from the start and its last byte ends it. */
const START_BYTES = 40;

function inTwoParts(input: object, limitMs: Promise<number>): Body {
  const first = Buffer.from(`${JSON.stringify(input)}\n`);
  const start = async (): Promise<Buffer> =>
    Buffer.from(JSON.stringify({ limitMs: await limitMs } satisfies z.infer<typeof runStartSchema>).padEnd(START_BYTES));
  const parts = async function* (): AsyncIterable<Buffer> {
    yield first;
    yield await start();
  };
  return { content: Readable.from(parts()), bytes: first.length + START_BYTES };
}

function answerOf<C extends ExecutorCall>(name: C, { statusCode, text }: Received): ExecutorAnswer<C> {
  if (statusCode !== 200) throw refusal(text);
  const parsed = EXECUTOR_CALLS[name].answer.safeParse(parseJson(text));
  if (!parsed.success) throw unavailable("The executor gave an answer that cannot be read.", parsed.error);
  return parsed.data as ExecutorAnswer<C>;
}

/** A named answer that no code was run, as opposed to a failure in the middle of it. */
function isRefusal({ statusCode, text }: Received): boolean {
  if (statusCode === 200) return false;
  const parsed = executorErrorSchema.safeParse(parseJson(text));
  return parsed.success && isErrorCode(parsed.data.code) && parsed.data.code !== "internal_error";
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
