/** The body of a run's request to the executor: a stream of its parts. */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { ExecutorRequest } from "../../protocol/executor";

export type RunQuestion = Omit<ExecutorRequest<"run">, "limitMs" | "notBefore"> & {
  /** The block of the last answered write. The executor decides meanwhile, and once more if that was too early. */
  readonly notBefore: Promise<number>;
};

/**
 * Code is serialized in slices of this many characters, each when the one before has been read: the executor may let it
 * wait for memory. Other requests are served in between.
 */
const SLICE_CHARS = 256 * 1024;

export class RunBody {
  /** The body to send. */
  readonly stream = new Readable({ read: () => this.#goOn() });
  /** Has the question written, or the next slice of its code. */
  #goOn: () => void = () => undefined;
  readonly #notBefore: Promise<number>;
  /** What is known of the parts after the question, and not written. */
  #later = "";
  #isComplete = false;
  #isWritten = false;
  #isCut = false;

  constructor({ notBefore, ...question }: RunQuestion) {
    const { code, ...rest } = question;
    this.#notBefore = notBefore;
    notBefore.then(
      (block) => this.#add(`${JSON.stringify({ notBefore: block })}\n`),
      () => this.cut(),
    );
    // Written when it is read for the first time: a block that is known at once is in the same chunk.
    if (code === undefined || code.length <= SLICE_CHARS)
      this.#goOn = () => this.#written(`${JSON.stringify(question)}\n`);
    else void this.#writeSlices(code, rest);
  }

  /** Ends the body with its last part, once the others are known. */
  end(last: string): void {
    this.#notBefore.then(
      () => {
        this.#isComplete = true;
        this.#add(last);
      },
      () => undefined,
    );
  }

  /** Ends the body where it is. */
  cut(): void {
    this.#isCut = true;
    this.stream.push(null);
    this.#goOn();
  }

  async #writeSlices(code: string, rest: object): Promise<void> {
    this.stream.push(`${JSON.stringify(rest).slice(0, -1)},"code":"`);
    for (let from = 0; from < code.length; from += SLICE_CHARS) {
      if (this.#isCut) return;
      // JSON.stringify escapes each half of a split surrogate pair; together they parse to the same text.
      const hasRoom = this.stream.push(JSON.stringify(code.slice(from, from + SLICE_CHARS)).slice(1, -1));
      await (hasRoom ? setImmediate() : new Promise<void>((resolve) => (this.#goOn = resolve)));
    }
    this.#written('"}\n');
  }

  /** Writes the end of the question, and what is known of the later parts. */
  #written(end: string): void {
    this.#goOn = () => undefined;
    this.#isWritten = true;
    this.#later = end + this.#later;
    this.#add("");
  }

  #add(part: string): void {
    this.#later += part;
    if (!this.#isWritten || this.#isCut) return;
    this.stream.push(this.#later);
    this.#later = "";
    if (this.#isComplete) this.stream.push(null);
  }
}
