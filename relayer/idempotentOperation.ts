/**
 * Outcome of an operation. It alone determines whether the operation may be repeated, never an error's code or status.
 * `nothing`: it has not happened and will not · `done`: it has happened, successfully or not · `unknown`: it may have
 * happened, or may still.
 */
export type End = "nothing" | "done" | "unknown";

/**
 * An operation under a client's `Idempotency-Key`. Its outcome is set by the code that performs it, never derived from
 * thrown errors.
 */
export class IdempotentOperation {
  /** Of the run that was made; stored with the answer. */
  receipt: string | undefined;
  #end: End;

  /**
   * `id` is the same in every attempt; `isRepeated` means that an earlier attempt ended unknown, so only proof that no
   * attempt had an effect sets `nothing`.
   */
  constructor(
    readonly id: string,
    readonly isRepeated: boolean,
  ) {
    this.#end = this.#before;
  }

  get end(): End {
    return this.#end;
  }

  /** Call before the first irreversible step. Call the returned function if that step certainly did not happen. */
  begins(): () => void {
    this.#end = "unknown";
    return () => {
      this.#end = this.#before;
    };
  }

  /** No attempt has had, or can still have, an effect. */
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
