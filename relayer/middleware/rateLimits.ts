/**
 * Rate limits: mints by address and over all (in the store, so that several relayers share the budget), requests by key (in memory: one second is too short
 * to be worth a query). Source: wire "Development", "Errors"; design of chain "A14".
 */
import { RateLimiterMemory, RateLimiterRes, type RateLimiterAbstract } from "rate-limiter-flexible";
import { KeywrightError } from "../../protocol/errors";
import type { RateLimits } from "../../protocol/limits";
import type { LimiterFactory } from "../store/rateLimits";

const MINUTE_SECONDS = 60;
const DAY_SECONDS = 24 * 60 * 60;
const ALL = "all";

export const memoryLimiter: LimiterFactory = (name, points, duration) => new RateLimiterMemory({ keyPrefix: name, points, duration });

export class RequestLimits {
  readonly #mintsByAddress: RateLimiterAbstract;
  readonly #mintsOverall: RateLimiterAbstract;
  readonly #byKey: RateLimiterAbstract;
  readonly #byAddress: RateLimiterAbstract;
  readonly #strangers: RateLimiterAbstract;
  readonly #heavy: RateLimiterAbstract;
  readonly #payments: RateLimiterAbstract;

  constructor(limits: RateLimits, shared: LimiterFactory = memoryLimiter) {
    this.#mintsByAddress = shared("mints_by_address", limits.mintsPerMinutePerAddress, MINUTE_SECONDS);
    this.#mintsOverall = shared("mints_overall", limits.mintsPerDay, DAY_SECONDS);
    this.#byKey = memoryLimiter("requests_by_key", limits.keyRequestsPerSecond, 1);
    this.#byAddress = memoryLimiter("requests_by_address", limits.addressRequestsPerSecond, 1);
    this.#strangers = memoryLimiter("strangers_by_address", limits.strangersPerMinutePerAddress, MINUTE_SECONDS);
    this.#heavy = memoryLimiter("heavy_by_address", limits.heavyPerMinutePerAddress, MINUTE_SECONDS);
    this.#payments = shared("payment_intents_by_account", limits.paymentIntentsPerMinute, MINUTE_SECONDS);
  }

  /** Every request, before anything is done for it. */
  request(clientGroup: string): Promise<void> {
    return consume(this.#byAddress, clientGroup, "Too many requests from this address.");
  }

  /** A request that costs much and asks for no credential. */
  heavy(clientGroup: string): Promise<void> {
    return consume(this.#heavy, clientGroup, "Too many requests of this kind from this address.");
  }

  /** A credential nobody here remembers, before anybody is asked about it. The answer takes it back: it was somebody's, or nobody could be asked. */
  async stranger(clientGroup: string): Promise<() => void> {
    await consume(this.#strangers, clientGroup, "Too many credentials from this address were nobody's.");
    return () => void this.#strangers.reward(clientGroup);
  }

  payment(accountId: string): Promise<void> {
    return consume(this.#payments, accountId, "Too many payments were begun for this account.");
  }

  mintBy(clientGroup: string): Promise<void> {
    return consume(this.#mintsByAddress, clientGroup, "Too many accounts or keys were asked for from this address.");
  }

  /** Counted after the request was found good, so that nonsense cannot use up everybody's budget. */
  mintAtAll(): Promise<void> {
    return consume(this.#mintsOverall, ALL, "The service's daily budget of new accounts and keys is used up.");
  }

  requestBy(actorId: string): Promise<void> {
    return consume(this.#byKey, actorId, "Too many requests with this key.");
  }
}

async function consume(limiter: RateLimiterAbstract, key: string, detail: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused;
    throw new KeywrightError("rate_limited", detail, {}, { retryAfterSeconds: refused.msBeforeNext / 1000 });
  }
}
