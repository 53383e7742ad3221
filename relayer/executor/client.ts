/** The relayer's client of the executor: typed calls over HTTP on a Unix socket. Source: protocol/executor.ts. */
import { Agent, request } from "undici";
import {
  EXECUTOR_CALLS,
  REQUEST_ID_HEADER,
  SHARE_HEADER,
  type ExecutorAnswer,
  type ExecutorCall,
  type ExecutorRequest,
} from "../../protocol/executor";
import { parseJson } from "../../protocol/json";
import { RunExchange, type RequestedRun } from "./runExchange";
import { refusalIn, unavailable, unreachable } from "./errors";
import type { RunQuestion } from "./runBody";
import { defined } from "../../protocol/defined";

const CALL_TIMEOUT_MS = 30_000;
/** Above the largest answer to a run: response and logs of 4 MiB each, of which JSON may escape a byte as six. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export interface CallContext {
  readonly requestId?: string;
  /** Whose share of the executor's memory a large run takes. */
  readonly account?: string;
  readonly signal?: AbortSignal;
}

/** The executor as routes see it; `ExecutorClient` is the implementation. */
export interface Executor {
  call<C extends ExecutorCall>(name: C, input: ExecutorRequest<C>, context?: CallContext): Promise<ExecutorAnswer<C>>;
  /**
   * Asks whether a run is permitted, before credit is reserved for it. Once it is, the question's code may be deleted;
   * it is not stored for other machines then.
   */
  askRun(question: RunQuestion, context?: CallContext): RequestedRun;
}

export class ExecutorClient implements Executor {
  readonly #agent: Agent;
  /**
   * For runs only: a run occupies its connection until it ends, which must not delay other calls. Unlimited, since the
   * executor limits runs per account; a limit here would let one account's runs block those of all others.
   */
  readonly #runs: Agent;

  constructor(socketPath: string, options: { connections?: number } = {}) {
    const config = {
      connect: { socketPath },
      headersTimeout: CALL_TIMEOUT_MS,
      bodyTimeout: CALL_TIMEOUT_MS,
      maxResponseSize: MAX_ANSWER_BYTES,
    };
    const { connections = 256 } = options;
    this.#agent = new Agent({ ...config, connections });
    this.#runs = new Agent({ ...config, connections: null });
  }

  /**
   * @throws KeywrightError the executor's refusal; `executor_unavailable` when it is unreachable, too slow or its
   * response is invalid.
   */
  async call<C extends ExecutorCall>(
    name: C,
    input: ExecutorRequest<C>,
    context: CallContext = {},
  ): Promise<ExecutorAnswer<C>> {
    const { statusCode, text } = await this.#send(name, JSON.stringify(input), context);
    if (statusCode !== 200) throw refusalIn(text).error;
    const parsed = EXECUTOR_CALLS[name].answer.safeParse(parseJson(text));
    if (!parsed.success) throw unavailable("The executor gave an answer that cannot be read.", parsed.error);
    return parsed.data as ExecutorAnswer<C>;
  }

  askRun(question: RunQuestion, context: CallContext = {}): RequestedRun {
    const headers = { ...headersOf(context), ...shareOf(question, context) };
    const { requestId } = context;
    const leave = (): void => {
      // If this fails the run is made and paid for, as any other.
      if (requestId !== undefined) this.call("leaveQueue", { requestId }).catch(() => undefined);
    };
    return new RunExchange(this.#runs, question, headers, leave);
  }

  async close(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#runs.destroy()]);
  }

  async #send(
    name: ExecutorCall,
    content: string,
    context: CallContext,
  ): Promise<{ statusCode: number; text: string }> {
    const deadline = AbortSignal.timeout(CALL_TIMEOUT_MS);
    try {
      const response = await request(`http://executor${EXECUTOR_CALLS[name].path}`, {
        method: "POST",
        dispatcher: this.#agent,
        signal: context.signal === undefined ? deadline : AbortSignal.any([deadline, context.signal]),
        headers: headersOf(context),
        body: content,
      });
      return { statusCode: response.statusCode, text: await response.body.text() };
    } catch (error) {
      throw unreachable(error);
    }
  }
}

/** Smaller requests are read at once, and need not say whose they are. */
const LARGE_CHARS = 32 * 1_024;

function shareOf({ code = "", params }: RunQuestion, { account = "" }: CallContext): Record<string, string> {
  const chars = code.length + params.length;
  return chars < LARGE_CHARS ? {} : { [SHARE_HEADER]: `${chars} ${account}` };
}

const headersOf = ({ requestId }: CallContext): Record<string, string> => ({
  "content-type": "application/json",
  ...defined({ [REQUEST_ID_HEADER]: requestId }),
});
