/**
 * Measures how long the keyholder's event loop is blocked, per second, since that blocks all requests. Also measures
 * this thread's CPU time: a long block with little CPU time means that other processes kept the machine busy.
 */
import type { Logger } from "pino";

const SECONDS_KEPT = 60;
const LONG_MS = 50;
/** Each wake-up of an idle process costs a tenth of a millisecond; a block is reported at most this much too short. */
const RESOLUTION_MS = 20;
const MICROSECONDS = 1e3;

/** The maximum of each of the last sixty seconds, in ms, newest last. */
export interface Held {
  readonly heldMs: number[];
  readonly computedMs: number[];
}

export class LoopWatch {
  readonly #held: Held = { heldMs: [], computedMs: [] };
  readonly #timers: NodeJS.Timeout[];
  #lookedAt = performance.now();
  #computedBefore = computed();
  #mostHeld = 0;
  #mostComputed = 0;
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#timers = [
      setInterval(() => this.#look(), RESOLUTION_MS).unref(),
      setInterval(() => this.#note(), 1_000).unref(),
    ];
  }

  get held(): Held {
    return { heldMs: [...this.#held.heldMs], computedMs: [...this.#held.computedMs] };
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #look(): void {
    const [now, computedNow] = [performance.now(), computed()];
    this.#mostHeld = Math.max(this.#mostHeld, now - this.#lookedAt - RESOLUTION_MS);
    this.#mostComputed = Math.max(this.#mostComputed, computedNow - this.#computedBefore);
    this.#lookedAt = now;
    this.#computedBefore = computedNow;
  }

  #note(): void {
    this.#look();
    const [heldMs, computedMs] = [Math.round(this.#mostHeld), Math.round(this.#mostComputed)];
    this.#mostHeld = 0;
    this.#mostComputed = 0;
    for (const [list, value] of [
      [this.#held.heldMs, heldMs],
      [this.#held.computedMs, computedMs],
    ] as const) {
      list.push(value);
      if (list.length > SECONDS_KEPT) list.shift();
    }
    if (heldMs > LONG_MS) this.#logger.warn({ heldMs, computedMs }, "the event loop was held");
  }
}

function computed(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / MICROSECONDS;
}
