/**
 * The body of a run's request to the executor: one text if both parts are known when it is sent, else a stream of them.
 */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { ExecutorRequest } from "../../protocol/executor";

export type RunQuestion = Omit<ExecutorRequest<"run">, "limitMs">;

/** Code is serialized in slices of this many characters, yielding to other requests in between. */
const SLICE_CHARS = 256 * 1024;

export class RunBody {
  #stream: Readable | undefined;
  /** The second part; empty if there will be none. */
  #last: string | undefined;
  #isWritten = false;
  readonly #question: RunQuestion;

  constructor(question: RunQuestion) {
    this.#question = question;
  }

  /** The body to send. */
  take(): string | Readable {
    const { code } = this.#question;
    const isSmall = code === undefined || code.length <= SLICE_CHARS;
    if (isSmall && this.#last !== undefined) return lineOf(this.#question) + this.#last;
    this.#stream = new Readable({ read: () => undefined });
    if (isSmall) this.#written(lineOf(this.#question));
    else void this.#writeSlices(code);
    return this.#stream;
  }

  /** Ends the body with the second part, or without any. */
  end(last = ""): void {
    if (this.#last !== undefined) return;
    this.#last = last;
    if (this.#isWritten) this.#close();
  }

  async #writeSlices(code: string): Promise<void> {
    const { code: _, ...rest } = this.#question;
    this.#stream?.push(`${JSON.stringify(rest).slice(0, -1)},"code":"`);
    for (let from = 0; from < code.length; from += SLICE_CHARS) {
      if (this.#last === "") return this.#written("");
      // JSON.stringify escapes each half of a split surrogate pair; together they parse to the same text.
      this.#stream?.push(JSON.stringify(code.slice(from, from + SLICE_CHARS)).slice(1, -1));
      await setImmediate();
    }
    this.#written('"}\n');
  }

  /** Writes the end of the question, then the second part if it is known. */
  #written(end: string): void {
    this.#stream?.push(end);
    this.#isWritten = true;
    if (this.#last !== undefined) this.#close();
  }

  #close(): void {
    this.#stream?.push(this.#last);
    this.#stream?.push(null);
  }
}

const lineOf = (question: RunQuestion): string => `${JSON.stringify(question)}\n`;
