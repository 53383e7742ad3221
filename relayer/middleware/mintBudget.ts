/**
 * The budget of new accounts and keys that cost their askers nothing, shared fairly by the networks that ask.
 *
 * Half of a day's budget may be used at once; what was used is refilled evenly at the other half a day. So no 24 hours
 * exceed the budget, and it is never used up until a day ends.
 *
 * A use is granted while there is left a multiple of what each network of its client has had of late. The more a
 * network has had, the more it leaves to those with less, by themselves and together: a crowd stops while there is
 * something left for a network that has had nothing, unless it has more such networks itself than there are uses left.
 */
import { KeywrightError } from "../../protocol/errors";
import type { Counts } from "../store/mintCounts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Uses are forgotten with this time constant: a steady rate counts as one day's uses. */
const FADING_MS = DAY_MS;
/** What must be left for each earlier use of the address itself, and of the widest network that contains it. */
const LEFT_BY_ADDRESS = 32;
const LEFT_BY_WIDEST = 8;
/** With a smaller budget proportionately less, or an address would get nothing but its first. */
const FULL_BURST = 256;
const ALL = "all";
const SEARCH_STEPS = 40;

interface Taken {
  /** Of all, before this use. */
  readonly all: number;
  /** Of each network, with what must be left for each of them. */
  readonly networks: readonly { readonly uses: number; readonly left: number }[];
}

export class MintBudget {
  readonly #burst: number;
  readonly #perMs: number;
  readonly #counts: Counts;

  constructor(perDay: number, counts: Counts) {
    this.#burst = Math.max(1, perDay / 2);
    this.#perMs = perDay / 2 / DAY_MS;
    this.#counts = counts;
  }

  /** `networks`: names of the client's networks, the narrowest first. @throws `rate_limited` */
  async take(networks: readonly string[]): Promise<void> {
    let taken: Taken | undefined;
    const isTaken = await this.#counts.change([ALL, ...networks], ([all, ...counts]) => {
      taken = {
        all: Math.max(0, (all?.points ?? 0) - (all?.ageMs ?? 0) * this.#perMs),
        networks: counts.map(({ points, ageMs }, place) => ({
          uses: points * Math.exp(-ageMs / FADING_MS),
          left: this.#leftByEach(place, counts.length),
        })),
      };
      return this.#fits(taken, 0) ? [taken.all + 1, ...taken.networks.map(({ uses }) => uses + 1)] : undefined;
    });
    if (!isTaken && taken !== undefined) throw this.#refused(taken);
  }

  #leftByEach(place: number, networks: number): number {
    const part = networks === 1 ? 0 : place / (networks - 1);
    return (LEFT_BY_ADDRESS + part * (LEFT_BY_WIDEST - LEFT_BY_ADDRESS)) * Math.min(1, this.#burst / FULL_BURST);
  }

  /** Whether there is room for one more use after so many milliseconds without any. */
  #fits({ all, networks }: Taken, afterMs: number): boolean {
    const left = this.#burst - Math.max(0, all - afterMs * this.#perMs);
    const fading = Math.exp(-afterMs / FADING_MS);
    return left >= Math.max(1, ...networks.map(({ uses, left: each }) => uses * fading * each));
  }

  #refused(taken: Taken): KeywrightError {
    const isForAll = !this.#fits({ ...taken, networks: [] }, 0);
    const detail = isForAll
      ? "All that the service has for new accounts and keys at the moment is taken; it is refilled continuously."
      : "Many accounts or keys were requested from this address or its network, and what is left is kept for others.";
    return new KeywrightError("rate_limited", detail, {}, { retryAfterSeconds: this.#waitMs(taken) / 1_000 });
  }

  /** When there will be room if nobody takes anything meanwhile. */
  #waitMs(taken: Taken): number {
    let [tooEarly, enough] = [0, 1_000];
    while (!this.#fits(taken, enough)) enough *= 2;
    for (let step = 0; step < SEARCH_STEPS; step++) {
      const middle = (tooEarly + enough) / 2;
      if (this.#fits(taken, middle)) enough = middle;
      else tooEarly = middle;
    }
    return enough;
  }
}
