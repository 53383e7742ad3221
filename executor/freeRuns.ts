/** Which runs cost nothing: those that the service failed, and mistakes. */
import type { RunOutcome } from "./sandbox/types";

/** Code found invalid within this time may be free; longer parsing is charged. */
const MISTAKE_MS = 250;
/** Each mistake takes a child, so more of them are charged. */
const MISTAKES_PER_MINUTE = 5;
const MINUTE_MS = 60_000;

export class FreeRuns {
  /** The free mistakes of this minute, by account. */
  readonly #mistakes = new Map<string, number>();
  #minute = 0;

  /** Asked once for each run that has ended: it counts. */
  isFree(account: string, { fault, error, durationMs }: RunOutcome, nowMs = performance.now()): boolean {
    if (fault === "service") return true;
    return error?.code === "invalid_code" && durationMs <= MISTAKE_MS && this.#isFreeMistake(account, nowMs);
  }

  #isFreeMistake(account: string, nowMs: number): boolean {
    const minute = Math.floor(nowMs / MINUTE_MS);
    if (minute !== this.#minute) this.#mistakes.clear();
    this.#minute = minute;
    const made = this.#mistakes.get(account) ?? 0;
    if (made >= MISTAKES_PER_MINUTE) return false;
    this.#mistakes.set(account, made + 1);
    return true;
  }
}
