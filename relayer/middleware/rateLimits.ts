/**
 * Rate limits. Budgets and per-key limits apply to the whole service, however many relayers it has; per-address limits
 * apply to each relayer, since capacity grows with their number.
 */
import { RateLimiterRes, type RateLimiterAbstract } from "rate-limiter-flexible";
import { KeywrightError } from "../../protocol/errors";
import type { RateLimits } from "../../protocol/limits";
import { memoryLimiter, type LimiterFactory } from "../store/rateLimits";
import { SharedLimit } from "./sharedLimit";

const MINUTE_SECONDS = 60;
const DAY_SECONDS = 24 * 60 * 60;
const ALL = "all";

/** Counters shared by the relayers on one store. */
export interface Shared {
  /** For windows of minutes and days. */
  readonly budgets: LimiterFactory;
  /** For windows of a second. */
  readonly rates: LimiterFactory;
  /** Relayers on this store, this one included. */
  readonly instances: () => number;
}

const ALONE: Shared = { budgets: memoryLimiter, rates: memoryLimiter, instances: () => 1 };

export class RequestLimits {
  readonly #mintsByAddress: RateLimiterAbstract;
  readonly #mintsOverall: RateLimiterAbstract;
  readonly #byKey: SharedLimit;
  readonly #byAddress: RateLimiterAbstract;
  readonly #strangers: RateLimiterAbstract;
  readonly #heavy: RateLimiterAbstract;
  readonly #payments: RateLimiterAbstract;
  readonly #freeWrites: RateLimiterAbstract;

  constructor(limits: RateLimits, { budgets, rates, instances }: Shared = ALONE) {
    this.#mintsByAddress = budgets("mints_by_address", limits.mintsPerMinutePerAddress, MINUTE_SECONDS);
    this.#mintsOverall = budgets("mints_overall", limits.mintsPerDay, DAY_SECONDS);
    this.#byKey = new SharedLimit({
      name: "requests_by_key",
      points: limits.keyRequestsPerSecond,
      seconds: 1,
      store: rates,
      instances,
    });
    this.#byAddress = memoryLimiter("requests_by_address", limits.addressRequestsPerSecond, 1);
    this.#strangers = memoryLimiter("strangers_by_address", limits.strangersPerMinutePerAddress, MINUTE_SECONDS);
    this.#heavy = memoryLimiter("heavy_by_address", limits.heavyPerMinutePerAddress, MINUTE_SECONDS);
    this.#payments = budgets("payment_intents_by_account", limits.paymentIntentsPerMinute, MINUTE_SECONDS);
    this.#freeWrites = budgets("free_writes_by_account", limits.freeWritesPerDay, DAY_SECONDS);
  }

  /** Every request, before any work is done for it. */
  request(clientGroup: string): Promise<void> {
    return consume(this.#byAddress, clientGroup, "Too many requests from this address.");
  }

  /** An expensive request that requires no credential. */
  heavy(clientGroup: string): Promise<void> {
    return consume(this.#heavy, clientGroup, "Too many requests of this kind from this address.");
  }

  /**
   * Counts a credential that this relayer has not cached, before it is looked up. Call the returned function to refund
   * the point if the credential was valid, or could not be looked up.
   */
  async stranger(clientGroup: string): Promise<() => void> {
    await consume(this.#strangers, clientGroup, "Too many invalid credentials from this address.");
    return () => void this.#strangers.reward(clientGroup);
  }

  payment(accountId: string): Promise<void> {
    return consume(this.#payments, accountId, "Too many payments were begun for this account.");
  }

  /** Counts a write that is not charged. Call the returned function to refund it if the write had no effect. */
  async freeWrite(accountId: string): Promise<() => Promise<void>> {
    const detail = "This account has no credit, and used up what it may write without it today. Top it up at /billing.";
    await consume(this.#freeWrites, accountId, detail);
    return async () => void (await this.#freeWrites.reward(accountId));
  }

  mintBy(clientGroup: string): Promise<void> {
    return consume(this.#mintsByAddress, clientGroup, "Too many accounts or keys were requested from this address.");
  }

  /** Counted after validation, so that invalid requests cannot use up the global budget. */
  mintAtAll(): Promise<void> {
    return consume(this.#mintsOverall, ALL, "The service's daily budget of new accounts and keys is used up.");
  }

  requestBy(actorId: string): Promise<void> {
    return consume(this.#byKey, actorId, "Too many requests with this key.");
  }
}

async function consume(
  limiter: Pick<SharedLimit, "consume"> | RateLimiterAbstract,
  key: string,
  detail: string,
): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused;
    throw new KeywrightError("rate_limited", detail, {}, { retryAfterSeconds: refused.msBeforeNext / 1000 });
  }
}
