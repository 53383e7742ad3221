/** Which runs cost nothing: those that the service failed, and mistakes. */
import type { RunOutcome } from "./sandbox/types";

/** Code found invalid within this time may be free; longer parsing is charged. */
const MISTAKE_MS = 250;
/** Each mistake takes a child, so more of them are charged: of one account, and of a crowd. */
const MISTAKES_PER_MINUTE = { each: 5, all: 60 };
const MINUTE_MS = 60_000;

export class FreeRuns {
  /** The free mistakes of this minute, by account. */
  readonly #mistakes = new Map<string, number>();
  #ofAll = 0;
  #minute = 0;

  /** Asked once for each run that has ended: it counts. */
  isFree(account: string, { fault, error, durationMs }: RunOutcome, nowMs = performance.now()): boolean {
    if (fault === "service") return true;
    return error?.code === "invalid_code" && durationMs <= MISTAKE_MS && this.#isFreeMistake(account, nowMs);
  }

  #isFreeMistake(account: string, nowMs: number): boolean {
    const minute = Math.floor(nowMs / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#mistakes.clear();
      this.#ofAll = 0;
      this.#minute = minute;
    }
    const made = this.#mistakes.get(account) ?? 0;
    if (made >= MISTAKES_PER_MINUTE.each || this.#ofAll >= MISTAKES_PER_MINUTE.all) return false;
    this.#mistakes.set(account, made + 1);
    this.#ofAll += 1;
    return true;
  }
}
