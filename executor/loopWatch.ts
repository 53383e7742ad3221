/**
 * How long the keyholder's event loop was held, second by second: whatever holds it holds everybody. Beside the time that passed stands the time this thread
 * computed meanwhile: where the first is long and the second short, the machine was busy with others.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Logger } from "pino";

const SECONDS_KEPT = 60;
const LONG_MS = 50;
const RESOLUTION_MS = 10;
const NANOSECONDS = 1e6;
const MICROSECONDS = 1e3;

/** The longest in each of the last sixty seconds, in ms, the newest last. */
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

  constructor(private readonly logger: Logger) {
    this.#delays.enable();
    this.#timers = [setInterval(() => this.#look(), RESOLUTION_MS).unref(), setInterval(() => this.#note(), 1_000).unref()];
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
    // The histogram counts the whole time between two looks, of which the first part was asked for.
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
    if (heldMs > LONG_MS) this.logger.warn({ heldMs, computedMs }, "the event loop was held");
  }
}

function computed(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / MICROSECONDS;
}
