/**
 * Measures how long the keyholder's event loop is blocked, per second, since that blocks all requests. Also measures
 * this thread's CPU time: a long block with little CPU time means that other processes kept the machine busy.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Logger } from "pino";

const SECONDS_KEPT = 60;
const LONG_MS = 50;
const RESOLUTION_MS = 10;
const NANOSECONDS = 1e6;
const MICROSECONDS = 1e3;

/** The maximum of each of the last sixty seconds, in ms, newest last. */
export interface Held {
  readonly heldMs: number[];
  readonly computedMs: number[];
}

export class LoopWatch {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #held: Held = { heldMs: [], computedMs: [] };
  readonly #timers: NodeJS.Timeout[];
  #computedBefore = computed();
  #mostComputed = 0;
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#delays.enable();
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
    this.#delays.disable();
  }

  #look(): void {
    const now = computed();
    this.#mostComputed = Math.max(this.#mostComputed, now - this.#computedBefore);
    this.#computedBefore = now;
  }

  #note(): void {
    this.#look();
    // The histogram counts the whole time between two samples; the first part of it is the sampling interval.
    const heldMs = Math.max(0, Math.round(this.#delays.max / NANOSECONDS) - RESOLUTION_MS);
    const computedMs = Math.round(this.#mostComputed);
    this.#delays.reset();
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
