/**
 * A limit for the whole service, not per machine. The first requests of a window need no database statement: together,
 * all machines may admit a tenth of the limit by local counters. The remainder is a row in the store, so the sum never
 * exceeds the limit. A relayer without peers counts in memory only.
 */
import { RateLimiterRes, type RateLimiterAbstract } from "rate-limiter-flexible";
import { memoryLimiter, type LimiterFactory } from "../store/rateLimits";

/** Divisor: this fraction of a limit's points is admitted without asking the store. */
const FREE_PART = 10;

export interface SharedLimitOptions {
  readonly name: string;
  readonly points: number;
  readonly seconds: number;
  readonly store: LimiterFactory;
  /** Relayers that share the store, this one included. */
  readonly instances: () => number;
}

export class SharedLimit {
  readonly #own: RateLimiterAbstract;
  readonly #rest: RateLimiterAbstract;
  readonly #freePoints: number;
  readonly #options: SharedLimitOptions;

  constructor(options: SharedLimitOptions) {
    this.#options = options;
    const { name, points, seconds, store } = options;
    this.#freePoints = Math.floor(points / FREE_PART);
    this.#own = memoryLimiter(name, points, seconds);
    this.#rest = store(name, points - this.#freePoints, seconds);
  }

  /** @throws RateLimiterRes when the limit is used up. */
  async consume(key: string): Promise<void> {
    const { consumedPoints } = await this.#own.consume(key);
    const instances = this.#options.instances();
    if (instances <= 1 || consumedPoints <= Math.floor(this.#freePoints / instances)) return;
    try {
      await this.#rest.consume(key);
    } catch (error) {
      if (error instanceof RateLimiterRes || consumedPoints > this.#options.points / instances) throw error;
      // Without the store each machine enforces an equal share, so that requests that need no store still succeed.
    }
  }
}
