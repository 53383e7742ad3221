/**
 * Limits the gas that payers pay for. The relayer chooses nonces, fees and gas limits; a compromised one could spend
 * the payers' whole balance in a few transactions and have them topped up again. So each fee is bounded by the chain's
 * base fee, and the total signed per hour by a budget.
 */
import { LRUCache } from "lru-cache";
import { KeywrightError } from "../../protocol/errors";

export interface GasRules {
  /** Upper limit of any fee per gas, whatever the base fee. */
  readonly maxFeePerGasWei: bigint;
  /** The most that may be offered on top of ten base fees. */
  readonly maxTipPerGasWei: bigint;
  /**
   * Sum of gas limit times fee of everything signed within an hour; of transactions with the same nonce only the most
   * expensive counts.
   */
  readonly maxWeiPerHour: bigint;
}

export interface GasOffer {
  readonly payer: number;
  readonly nonce: number;
  readonly gasLimit: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

const MAX_GAS = 30_000_000n;
/** The base fee rises by at most an eighth per block, so tenfold takes about twenty full blocks. */
const BASE_FEES = 10n;
const READ_AGAIN_MS = 5_000;
/** How long a base fee stays valid when the chain cannot be read, and how long it outlives a lower, newer one. */
const BASE_FEE_LIFE_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Replacements only concern a payer's most recent nonces. */
const NONCES_KEPT = 64;

export class GasGuard {
  #baseFee: { readonly wei: bigint; readonly at: number } | undefined;
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;
  /** Wei signed for in each minute of the last hour. */
  readonly #minutes = new Map<number, bigint>();
  /** The most expensive transaction signed for each of a payer's recent nonces. */
  readonly #highestOffers = new Map<number, LRUCache<number, bigint>>();
  readonly #rules: GasRules;
  readonly #readBaseFee: () => Promise<bigint>;
  readonly #now: () => number;

  constructor(rules: GasRules, readBaseFee: () => Promise<bigint>, now: () => number = () => performance.now()) {
    this.#rules = rules;
    this.#readBaseFee = readBaseFee;
    this.#now = now;
  }

  /** Resolves once a base fee is known. @throws KeywrightError `chain_unavailable` when none is known or readable. */
  async ready(): Promise<void> {
    if (this.#now() - this.#readAt < READ_AGAIN_MS) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    const isKnown = this.#baseFee !== undefined && this.#now() - this.#readAt < BASE_FEE_LIFE_MS;
    if (isKnown) this.#reading.catch(() => undefined);
    else await this.#reading;
  }

  /**
   * Counts a transaction before it is signed. @throws KeywrightError `invalid_value`, or `no_payer_available` when the
   * hour's budget is used up or the fee too high: fees that rise, or are misread for a moment, fall again.
   */
  admit(offer: GasOffer): void {
    const { maxFeePerGas, maxPriorityFeePerGas, gasLimit } = offer;
    const cap = this.#cap();
    if (maxFeePerGas > cap) throw overCap(cap);
    if (maxPriorityFeePerGas > maxFeePerGas) throw invalid("maxPriorityFeePerGas is above maxFeePerGas.");
    if (gasLimit > MAX_GAS) throw invalid(`gasLimit is at most ${MAX_GAS}.`);
    this.#spend(offer.payer, offer.nonce, gasLimit * maxFeePerGas);
  }

  #cap(): bigint {
    const { maxFeePerGasWei, maxTipPerGasWei } = this.#rules;
    const following = BASE_FEES * (this.#baseFee?.wei ?? 0n) + maxTipPerGasWei;
    return following < maxFeePerGasWei ? following : maxFeePerGasWei;
  }

  #spend(payer: number, nonce: number, wei: bigint): void {
    const nonces = this.#highestOffers.get(payer) ?? new LRUCache<number, bigint>({ max: NONCES_KEPT });
    const before = nonces.get(nonce) ?? 0n;
    const more = wei > before ? wei - before : 0n;
    const minute = Math.floor(this.#now() / MINUTE_MS);
    for (const old of this.#minutes.keys()) if (old < minute - HOUR_MS / MINUTE_MS) this.#minutes.delete(old);
    const spent = [...this.#minutes.values()].reduce((sum, each) => sum + each, 0n);
    if (spent + more > this.#rules.maxWeiPerHour) throw overBudget(this.#rules.maxWeiPerHour);
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0n) + more);
    nonces.set(nonce, wei > before ? wei : before);
    this.#highestOffers.set(payer, nonces);
  }

  async #read(): Promise<void> {
    const wei = await this.#readBaseFee();
    this.#readAt = this.#now();
    const isLower =
      this.#baseFee !== undefined && wei < this.#baseFee.wei && this.#now() - this.#baseFee.at < BASE_FEE_LIFE_MS;
    // A higher fee stays for a while: a replacement must exceed what was offered when fees were higher.
    if (!isLower) this.#baseFee = { wei, at: this.#now() };
  }
}

function invalid(detail: string): KeywrightError {
  return new KeywrightError("invalid_value", detail);
}

function overCap(wei: bigint): KeywrightError {
  const why = "ten base fees and MAX_TIP_PER_GAS_WEI, never more than MAX_FEE_PER_GAS_WEI";
  const detail = `maxFeePerGas is at most ${wei} wei: ${why}.`;
  return new KeywrightError("no_payer_available", detail, {}, { retryAfterSeconds: 5 });
}

function overBudget(maxWeiPerHour: bigint): KeywrightError {
  const detail = `The payers' gas budget of ${maxWeiPerHour} wei an hour (MAX_GAS_WEI_PER_HOUR) is used up.`;
  return new KeywrightError("no_payer_available", detail, {}, { retryAfterSeconds: 60 });
}
