/** Polls the chain's head several times per block; waiting operations are woken by the next head. */
import type { Logger } from "pino";
import type { RpcClient } from "./client";
import { countIn } from "./quantities";

export interface HeadOptions {
  readonly rpc: RpcClient;
  readonly log: Logger;
  readonly fastestPollMs: number;
  readonly slowestPollMs: number;
}

const POLLS_PER_BLOCK = 5;
/** Share of the fastest pause before the first poll for an operation: a chain that mines at once has a head by then. */
const EARLY = 0.2;

export class Head {
  #number = 0;
  #changedAt = 0;
  #answeredAt = 0;
  /** Smoothed time between blocks. */
  #blockMs: number;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #waiting = new Set<() => void>();
  /** The poll under way or next is the first one for a waiting operation. */
  #isEarly = false;
  readonly #options: HeadOptions;

  constructor(options: HeadOptions) {
    this.#options = options;
    this.#blockMs = options.slowestPollMs;
  }

  start(): void {
    void this.#poll();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#wake();
  }

  /** 0 before the first response. */
  get number(): number {
    return this.#number;
  }

  /** Seconds since the chain last answered. */
  get ageSeconds(): number {
    return this.#answeredAt === 0 ? Infinity : (performance.now() - this.#answeredAt) / 1_000;
  }

  /** Resolves at the next change of the head, or after `atMostMs`. */
  next(atMostMs: number): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    this.#hurry();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, atMostMs);
      this.#waiting.add(done);
    });
  }

  async #poll(): Promise<void> {
    const wasEarly = this.#isEarly;
    this.#isEarly = false;
    try {
      this.#take(countIn(await this.#options.rpc.call("eth_blockNumber", [])));
    } catch (error) {
      if (!this.#stopped) this.#options.log.warn({ err: error }, "the chain's head cannot be read");
    }
    if (!this.#stopped) this.#schedule(wasEarly ? this.#options.fastestPollMs : this.#pause());
  }

  #take(number: number): void {
    const now = performance.now();
    this.#answeredAt = now;
    if (number === this.#number) return;
    if (this.#changedAt > 0 && number > this.#number)
      this.#blockMs = 0.7 * this.#blockMs + (0.3 * (now - this.#changedAt)) / (number - this.#number);
    this.#number = number;
    this.#changedAt = now;
    this.#wake();
  }

  /** Several polls per block while an operation waits, otherwise the slowest rate. */
  #pause(): number {
    const { fastestPollMs, slowestPollMs } = this.#options;
    return this.#waiting.size === 0
      ? slowestPollMs
      : Math.min(slowestPollMs, Math.max(fastestPollMs, this.#blockMs / POLLS_PER_BLOCK));
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), ms);
  }

  /** The first waiter cuts a long pause short. */
  #hurry(): void {
    if (this.#waiting.size > 0 || this.#timer === undefined) return;
    this.#isEarly = true;
    this.#schedule(EARLY * this.#options.fastestPollMs);
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
