/**
 * Rate limits. Budgets and per-key limits apply to the whole service, however many relayers it has; per-address limits
 * apply to each relayer, since capacity grows with their number.
 */
import { createHmac } from "node:crypto";
import { RateLimiterRes, type RateLimiterAbstract } from "rate-limiter-flexible";
import { clientGroup, clientNetworks } from "../../protocol/clientGroup";
import { KeywrightError } from "../../protocol/errors";
import type { RateLimits } from "../../protocol/limits";
import { memoryCounts, type Counts } from "../store/mintCounts";
import { memoryLimiter, type LimiterFactory } from "../store/rateLimits";
import { MintBudget } from "./mintBudget";
import { SharedLimit } from "./sharedLimit";

const MINUTE_SECONDS = 60;
const DAY_SECONDS = 24 * 60 * 60;

/** Counters shared by the relayers on one store. */
export interface Shared {
  /** For windows of minutes and days. */
  readonly budgets: LimiterFactory;
  /** For windows of a second. */
  readonly rates: LimiterFactory;
  /** Of new accounts and keys. */
  readonly mints: Counts;
  /** Relayers on this store, this one included. */
  readonly instances: () => number;
}

const alone = (): Shared => ({
  budgets: memoryLimiter,
  rates: memoryLimiter,
  mints: memoryCounts(),
  instances: () => 1,
});

/**
 * Stand for the address and the networks that contain it in the store, which keeps no addresses. There are so few IPv4
 * addresses that only a hash with a key, which is not in the store, hides them.
 */
export const hashedNetworks = (key: string, address: string): string[] =>
  clientNetworks(address).map((network) => hashed(key, network));

export const hashedAddress = (key: string, address: string): string => hashed(key, clientGroup(address));

const hashed = (key: string, network: string): string => createHmac("sha256", key).update(network).digest("hex");

export class RequestLimits {
  readonly #mintsByAddress: RateLimiterAbstract;
  readonly #mints: MintBudget;
  readonly #byKey: SharedLimit;
  readonly #byAddress: RateLimiterAbstract;
  readonly #unknownCredentials: RateLimiterAbstract;
  readonly #heavy: RateLimiterAbstract;
  readonly #payments: RateLimiterAbstract;
  readonly #freeWrites: RateLimiterAbstract;
  readonly #freeChanges: RateLimiterAbstract;

  constructor(limits: RateLimits, { budgets, rates, mints, instances }: Shared = alone()) {
    this.#mintsByAddress = budgets("mints_by_address", limits.mintsPerMinutePerAddress, MINUTE_SECONDS);
    this.#mints = new MintBudget(limits.mintsPerDay, mints);
    this.#byKey = new SharedLimit({
      name: "requests_by_key",
      points: limits.keyRequestsPerSecond,
      seconds: 1,
      store: rates,
      instances,
    });
    this.#byAddress = memoryLimiter("requests_by_address", limits.addressRequestsPerSecond, 1);
    this.#unknownCredentials = memoryLimiter(
      "unknown_credentials_by_address",
      limits.unknownCredentialsPerMinutePerAddress,
      MINUTE_SECONDS,
    );
    this.#heavy = memoryLimiter("heavy_by_address", limits.heavyPerMinutePerAddress, MINUTE_SECONDS);
    this.#payments = budgets("payment_intents_by_account", limits.paymentIntentsPerMinute, MINUTE_SECONDS);
    this.#freeWrites = budgets("free_writes_by_account", limits.freeWritesPerDay, DAY_SECONDS);
    this.#freeChanges = budgets("free_changes_by_key", limits.freeChangesPerDay, DAY_SECONDS);
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
  async unknownCredential(clientGroup: string): Promise<() => void> {
    const refund = (): void => void this.#unknownCredentials.reward(clientGroup);
    try {
      await consume(this.#unknownCredentials, clientGroup, "Too many invalid credentials from this address.");
    } catch (refused) {
      // It was not looked up, and those before it may be valid.
      refund();
      throw refused;
    }
    return refund;
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

  /** Counts what is stored at no cost. Of each credential: none uses up what an owner needs to end another. */
  freeChange(actorId: string): Promise<void> {
    return consume(this.#freeChanges, actorId, "Too many changes that cost nothing were made with this key today.");
  }

  /** `address`: a hash, since the count is in the store. */
  mintBy(address: string): Promise<void> {
    return consume(this.#mintsByAddress, address, "Too many accounts or keys were requested from this address.");
  }

  /** Counts a new account or key in the service's budget. `networks`: as `hashedNetworks` returns them. */
  mint(networks: readonly string[]): Promise<void> {
    return this.#mints.take(networks);
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
    throw refused instanceof RateLimiterRes ? rateLimited(refused, detail) : refused;
  }
}

const rateLimited = ({ msBeforeNext }: RateLimiterRes, detail: string): KeywrightError =>
  new KeywrightError("rate_limited", detail, {}, { retryAfterSeconds: msBeforeNext / 1000 });
