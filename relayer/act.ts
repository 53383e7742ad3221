/**
 * How an act ends. Whether it may be done again follows from this alone, never from an error's code or status.
 * `nothing`: it has not happened and will not · `done`: it has happened, with or without success · `unknown`: it may have happened, or may still.
 */
export type End = "nothing" | "done" | "unknown";

/** One act under a client's `Idempotency-Key`. Those who carry it out say how far it has come; what they threw says nothing about that. */
export class Act {
  #end: End;

  /** `id` is the same in every try; with `isRepeated` an earlier try was left without a known end, so that only a certain word makes this one `nothing`. */
  constructor(
    readonly id: string,
    readonly isRepeated: boolean,
  ) {
    this.#end = this.#before;
  }

  get end(): End {
    return this.#end;
  }

  /** To be called before the first step that cannot be taken back. The answer is for the case that this step certainly was not taken. */
  begins(): () => void {
    this.#end = "unknown";
    return () => {
      this.#end = this.#before;
    };
  }

  /** No try of it has had an effect or can have one any more. */
  cameToNothing(): void {
    this.#end = "nothing";
  }

  happened(): void {
    this.#end = "done";
  }

  get #before(): End {
    return this.isRepeated ? "unknown" : "nothing";
  }
}
