/**
 * Limits how many runs start at once. Slots outnumber cores, since most runs wait for an op, a fetch or a timer. Runs
 * that compute gain nothing from more processes than cores: these only push each other out of the caches.
 */
import { availableParallelism } from "node:os";

/** A run that has computed for this long no longer keeps others from starting. */
const LONGEST_MS = 10;

export class Starts {
  #underWay = 0;
  readonly #most: number;

  constructor(most = availableParallelism()) {
    this.#most = most;
  }

  get isFree(): boolean {
    return this.#underWay < this.#most;
  }

  /**
   * Counts a start until the returned function is called for the first time, but no longer than a moment. Then calls
   * `onFree`.
   */
  begin(onFree: () => void): () => void {
    this.#underWay++;
    let isUnderWay = true;
    const end = (): void => {
      if (!isUnderWay) return;
      isUnderWay = false;
      clearTimeout(timer);
      this.#underWay--;
      onFree();
    };
    const timer = setTimeout(end, LONGEST_MS);
    return end;
  }
}
