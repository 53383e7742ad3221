/**
 * One HTTP POST with its answer as text. undici's `request` creates a stream and a signal per call, which cost more
 * than the rest of a small call.
 */
import type { Dispatcher } from "undici";

export interface PostOptions {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Covers reading the answer, too. */
  readonly timeoutMs: number;
}

export interface Posted {
  readonly statusCode: number;
  readonly text: string;
}

/** @throws DOMException a TimeoutError; the dispatcher's errors. */
export function post(dispatcher: Dispatcher, options: PostOptions): Promise<Posted> {
  return new Exchange(dispatcher, options).answer;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<Posted>();
  readonly #timer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | undefined;
  /** The time-out's error, once it has passed. */
  #late: Error | undefined;
  #statusCode = 0;
  readonly #chunks: Buffer[] = [];

  constructor(dispatcher: Dispatcher, { timeoutMs, ...request }: PostOptions) {
    this.#timer = setTimeout(() => this.#giveUp(timeoutMs), timeoutMs);
    try {
      dispatcher.dispatch({ ...request, method: "POST" }, this);
    } catch (error) {
      this.#fail(error);
    }
  }

  get answer(): Promise<Posted> {
    return this.#answer.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#late !== undefined) controller.abort(this.#late);
  }

  onResponseStart(_controller: unknown, statusCode: number): void {
    this.#statusCode = statusCode;
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    const [only = Buffer.alloc(0)] = this.#chunks;
    const bytes = this.#chunks.length <= 1 ? only : Buffer.concat(this.#chunks);
    this.#answer.resolve({ statusCode: this.#statusCode, text: bytes.toString("utf8") });
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(error);
  }

  #giveUp(timeoutMs: number): void {
    this.#late = new DOMException(`no complete answer within ${timeoutMs} ms`, "TimeoutError");
    this.#fail(this.#late);
    this.#controller?.abort(this.#late);
  }

  #fail(error: unknown): void {
    clearTimeout(this.#timer);
    this.#answer.reject(error as Error);
  }
}
