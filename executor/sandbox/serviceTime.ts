/**
 * How long a run waited for the service: for a core, for an op, for its share of what fetches need. It is not billed,
 * so that a run costs the same on a busy machine. What it computes meanwhile is billed, as is all waiting for others.
 */
import type { Scheduled } from "./memory";

export class ServiceTime {
  readonly #scheduled: () => Scheduled;
  readonly #atStart: Scheduled;
  #open = 0;
  #since = { ms: 0, activeMs: 0 };
  #idleMs = 0;

  /** `scheduled` is what the kernel says of the child. */
  constructor(scheduled: () => Scheduled) {
    this.#scheduled = scheduled;
    this.#atStart = scheduled();
  }

  /** The run waits until the returned function is called; waits that overlap count once. */
  begin(): () => void {
    if (this.#open++ === 0) this.#since = this.#now();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.#open === 0) this.#close();
    };
  }

  /** In milliseconds. Waits that are not over end now. */
  total(): number {
    if (this.#open > 0) this.#close();
    return this.#idleMs + this.#scheduled().waitedMs - this.#atStart.waitedMs;
  }

  #now(): { ms: number; activeMs: number } {
    const { ranMs, waitedMs } = this.#scheduled();
    return { ms: performance.now(), activeMs: ranMs + waitedMs };
  }

  #close(): void {
    const now = this.#now();
    this.#idleMs += Math.max(0, now.ms - this.#since.ms - (now.activeMs - this.#since.activeMs));
    this.#since = now;
  }
}
