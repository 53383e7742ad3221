/** The body of a run's request to the executor: a stream of its two parts. */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { ExecutorRequest } from "../../protocol/executor";

export type RunQuestion = Omit<ExecutorRequest<"run">, "limitMs">;

/**
 * Code is serialized in slices of this many characters, each when the one before has been read: the executor may let it
 * wait for memory. Other requests are served in between.
 */
const SLICE_CHARS = 256 * 1024;

export class RunBody {
  /** The body to send. */
  readonly stream = new Readable({ read: () => this.#goOn() });
  /** Has the next slice of the code written. */
  #goOn: () => void = () => undefined;
  /** The second part; empty if there will be none. */
  #last: string | undefined;
  #isWritten = false;

  constructor(question: RunQuestion) {
    const { code, ...rest } = question;
    if (code === undefined || code.length <= SLICE_CHARS) this.#written(`${JSON.stringify(question)}\n`);
    else void this.#writeSlices(code, rest);
  }

  /** Ends the body with the second part, or without any. */
  end(last = ""): void {
    if (this.#last !== undefined) return;
    this.#last = last;
    if (this.#isWritten) this.#close();
    else if (last === "") this.#goOn();
  }

  async #writeSlices(code: string, rest: Omit<RunQuestion, "code">): Promise<void> {
    this.stream.push(`${JSON.stringify(rest).slice(0, -1)},"code":"`);
    for (let from = 0; from < code.length; from += SLICE_CHARS) {
      if (this.#last === "") return this.#written("");
      // JSON.stringify escapes each half of a split surrogate pair; together they parse to the same text.
      const hasRoom = this.stream.push(JSON.stringify(code.slice(from, from + SLICE_CHARS)).slice(1, -1));
      await (hasRoom ? setImmediate() : new Promise<void>((resolve) => (this.#goOn = resolve)));
    }
    this.#written('"}\n');
  }

  /** Writes the end of the question, then the second part if it is known. */
  #written(end: string): void {
    this.stream.push(end);
    this.#isWritten = true;
    if (this.#last !== undefined) this.#close();
  }

  #close(): void {
    this.stream.push(this.#last);
    this.stream.push(null);
  }
}
