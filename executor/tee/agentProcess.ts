/**
 * The parent side of `sdkProcess`: one call at a time, each with a deadline. A process that fails or times out is
 * killed; the next call starts a new one.
 */
import { fork, type ChildProcess } from "node:child_process";
import { built } from "../built";
import { TeeError } from "./types";
import { type AgentAnswer, type AgentCall, type AgentRequest } from "./sdkProcess";

const PROGRAM = built("tee/sdkProcess.js");
/** Enough for the SDK and an answer of a few MiB; an endless answer only ends that process. */
const HEAP_MIB = 64;
const MAX_WAITING = 32;
const IDLE_MS = 15_000;

export interface AgentProcessOptions {
  endpoint: string;
  /** For one whole call, including the start of the process. */
  timeoutMs: number;
}

export class AgentProcess {
  #child: ChildProcess | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #nextId = 1;
  #idle: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #options: AgentProcessOptions;

  constructor(options: AgentProcessOptions) {
    this.#options = options;
  }

  /** Calls the guest agent after the earlier calls are done. Throws TeeError. */
  async call(call: AgentCall): Promise<unknown> {
    if (this.#waiting >= MAX_WAITING)
      throw new TeeError("busy", `${MAX_WAITING} calls to the guest agent are waiting already`);
    this.#waiting += 1;
    const answer = this.#tail.then(() => this.#ask(call));
    this.#tail = answer.catch(() => undefined);
    try {
      return await answer;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Kills the process; a call in progress fails. */
  end(): void {
    clearTimeout(this.#idle);
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
  }

  close(): void {
    this.#closed = true;
    this.end();
  }

  async #ask(call: AgentCall): Promise<unknown> {
    if (this.#closed) throw new TeeError("unreachable", "the guest agent's client is closed");
    clearTimeout(this.#idle);
    const child = (this.#child ??= this.#fork());
    const request: AgentRequest = { ...call, id: this.#nextId++, endpoint: this.#options.endpoint };
    try {
      const answer = await answerOf(child, request, this.#options.timeoutMs);
      if (!answer.ok) throw new TeeError(answer.reason, `${call.call}: ${answer.message}`);
      return answer.value;
    } catch (error) {
      this.end();
      throw error;
    } finally {
      if (this.#child) this.#idle = setTimeout(() => this.end(), IDLE_MS).unref();
    }
  }

  #fork(): ChildProcess {
    const child = fork(PROGRAM, [], {
      // An empty environment: nothing inherited can redirect the SDK, and no secret is copied.
      env: {},
      execArgv: [`--max-old-space-size=${HEAP_MIB}`],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    child.unref();
    child.channel?.unref();
    // Without a listener, a late error of a killed process would crash this one. A process that exits while idle is
    // replaced at the next call.
    child.on("error", () => undefined);
    child.once("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
    return child;
  }
}

function answerOf(child: ChildProcess, request: AgentRequest, timeoutMs: number): Promise<AgentAnswer> {
  return new Promise((resolveAnswer, reject) => {
    const finish = (act: () => void): void => {
      clearTimeout(deadline);
      child.off("message", onMessage).off("error", onError).off("exit", onExit);
      act();
    };
    const fail = (reason: TeeError["reason"], message: string): void =>
      finish(() => reject(new TeeError(reason, `${request.call}: ${message}`)));
    const onMessage = (answer: AgentAnswer): void => {
      if (answer.id === request.id) finish(() => resolveAnswer(answer));
    };
    const onError = (): void => fail("unreachable", "the SDK's process could not be used");
    const onExit = (_code: number | null, signal: string | null): void =>
      fail("ended", `the SDK's process ended before it answered (${signal ?? "exit"})`);
    const deadline = setTimeout(() => fail("timed_out", `no answer within ${timeoutMs} ms`), timeoutMs);
    child.on("message", onMessage).on("error", onError).on("exit", onExit);
    child.send(request, (error) => error && onError());
  });
}
