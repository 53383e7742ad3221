/**
 * A run's conversation with the executor: one HTTP exchange in parts: question and block of the last write, permission,
 * start, outcome.
 */
import type { Dispatcher } from "undici";
import { KeywrightError } from "../../protocol/errors";
import {
  EXECUTOR_CALLS,
  runOutcomeSchema,
  runPermissionSchema,
  type ExecutorAnswer,
  type RunKey,
} from "../../protocol/executor";
import { parseJson } from "../../protocol/json";
import type { KeyState } from "../../protocol/keyState";
import type { AccountId, KeyId } from "../../protocol/ids";
import { MAX_WALL_MS } from "../../protocol/limits";
import { refusalIn, unavailable, unreachable } from "./errors";
import { RunBody, type RunQuestion } from "./runBody";

/** A run submitted to the executor. Unless started it must be abandoned, whether permitted or not. */
export interface RequestedRun {
  /**
   * The state of the permitted key, as of the block of the decision.
   * @throws KeywrightError the executor's refusal, a `DeniedRun` where the contract knows the key;
   * `executor_unavailable`.
   */
  readonly permission: Promise<KeyState>;
  /** Starts it with this time limit. @throws KeywrightError as `permission`. */
  start(limitMs: number): Promise<ExecutorAnswer<"run">>;
  /**
   * False only while it is certain that no code has run: before `start`, after a refusal, and if the executor was never
   * reached.
   */
  readonly mayHaveRun: boolean;
  /** Has it leave the executor's queue, if it waits there: then `start` is refused, and nothing ran. */
  leave(): void;
  /** Declares that it will not be started; no effect after `start`. */
  abandon(): void;
}

/** The contract denies the run to a key it knows. */
export class DeniedRun extends KeywrightError {
  constructor(
    { code, detail, facts }: KeywrightError,
    readonly key: KeyState,
  ) {
    super(code, detail, facts);
  }
}

/** The executor decides within seconds, or reports that it cannot. */
const PERMISSION_TIMEOUT_MS = 30_000;
/** Beside its wall time: queueing, fetching code by CID and starting a child process. */
const BESIDE_RUN_MS = 120_000;
const OUTCOME_TIMEOUT_MS = MAX_WALL_MS + BESIDE_RUN_MS;
const LINE_END = 0x0a;

/** Streams the request in parts, each sent after the matching part of the response. */
export class RunExchange implements RequestedRun, Dispatcher.DispatchHandler {
  readonly #body: RunBody;
  readonly #permission = Promise.withResolvers<KeyState>();
  readonly #outcome = Promise.withResolvers<ExecutorAnswer<"run">>();
  #status = 0;
  #chunks: Buffer[] = [];
  #isPermitted = false;
  #hasEnded = false;
  #isStarted = false;
  #isAbandoned = false;
  #mayHaveRun = false;

  readonly leave: () => void;

  constructor(
    dispatcher: Dispatcher,
    question: RunQuestion,
    headers: Readonly<Record<string, string>>,
    leave: () => void,
  ) {
    this.leave = leave;
    // No unhandled rejections: the run may be abandoned without awaiting these.
    this.#permission.promise.catch(() => undefined);
    this.#outcome.promise.catch(() => undefined);
    question.notBefore.catch((error: unknown) => this.#fail(error as Error));
    this.#body = new RunBody(question);
    this.#send(dispatcher, headers);
  }

  #send(dispatcher: Dispatcher, headers: Readonly<Record<string, string>>): void {
    const { path } = EXECUTOR_CALLS.run;
    const timeouts = { headersTimeout: PERMISSION_TIMEOUT_MS, bodyTimeout: OUTCOME_TIMEOUT_MS };
    const request = { origin: "http://executor", path, method: "POST", headers, ...timeouts } as const;
    try {
      dispatcher.dispatch({ ...request, body: this.#body.stream }, this);
    } catch (error) {
      this.#fail(unreachable(error));
    }
  }

  get permission(): Promise<KeyState> {
    return this.#permission.promise;
  }

  get mayHaveRun(): boolean {
    return this.#mayHaveRun;
  }

  start(limitMs: number): Promise<ExecutorAnswer<"run">> {
    this.#isStarted = true;
    this.#mayHaveRun = !this.#hasEnded;
    this.#body.end(`${JSON.stringify({ limitMs })}\n`);
    return this.#outcome.promise;
  }

  /** Ends the request body without a start, so that the executor drops the run; the connection stays usable. */
  abandon(): void {
    if (this.#isStarted || this.#isAbandoned) return;
    this.#isAbandoned = true;
    this.#body.cut();
  }

  onRequestStart(): void {}

  onResponseStart(_controller: unknown, statusCode: number): void {
    this.#status = statusCode;
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    const end = this.#status === 200 && !this.#isPermitted ? chunk.indexOf(LINE_END) : -1;
    if (end < 0) return void this.#chunks.push(chunk);
    this.#isPermitted = true;
    this.#readPermission(this.#received(chunk.subarray(0, end)));
    this.#chunks.push(chunk.subarray(end + 1));
  }

  onResponseEnd(): void {
    const text = this.#received();
    this.#hasEnded = true;
    if (this.#status === 200) this.#readOutcome(text);
    else this.#refuse(text);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(unreachable(error));
  }

  #received(last?: Buffer): string {
    const text = Buffer.concat(last === undefined ? this.#chunks : [...this.#chunks, last]).toString("utf8");
    this.#chunks = [];
    return text;
  }

  #readPermission(line: string): void {
    const parsed = runPermissionSchema.safeParse(parseJson(line));
    if (parsed.success) this.#permission.resolve(keyStateOf(parsed.data.key));
    else this.#fail(unavailable("The executor gave an answer that cannot be read.", parsed.error));
  }

  #readOutcome(line: string): void {
    const value = parseJson(line) as { refused?: unknown } | undefined;
    if (value?.refused !== undefined) return this.#refuse(JSON.stringify(value.refused));
    const parsed = runOutcomeSchema.safeParse(value);
    if (parsed.success && "answer" in parsed.data) this.#outcome.resolve(parsed.data.answer);
    else this.#fail(unavailable("The executor gave an answer that cannot be read.", parsed.error));
  }

  #refuse(text: string): void {
    const { error, isCertain, key } = refusalIn(text);
    this.#mayHaveRun &&= !isCertain;
    this.#fail(key === undefined ? error : new DeniedRun(error, keyStateOf(key)));
  }

  #fail(error: Error): void {
    this.#hasEnded = true;
    this.#permission.reject(error);
    this.#outcome.reject(error);
  }
}

const keyStateOf = (key: RunKey): KeyState => ({
  ...key,
  keyId: key.keyId as KeyId,
  accountId: key.accountId as AccountId,
  expiresAtSeconds: BigInt(key.expiresAtSeconds),
  capCents: BigInt(key.capCents),
});
