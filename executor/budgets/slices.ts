/**
 * What a keyholder has leased of one counter in one window. A lease holds units of the counter, from `used - amount` to
 * `used` as the contract said; every unit is spent at most once, and by a call with a limit above it. So calls with a
 * limit L spend at most L of a window, on however many machines, whatever other limits are stated for the same name.
 */
import type { Hash32 } from "../../protocol/ids";

/** A lease as it is on the chain. */
export interface Landed {
  readonly id: Hash32;
  readonly amount: bigint;
  /** The counter after it. */
  readonly used: bigint;
  /** No reorganization of the chain is expected to reach it. */
  readonly isFinal: boolean;
}

interface Held {
  landed: Landed;
  spent: bigint;
  /** False while it is not on the chain any more: nothing is spent of it then. */
  isThere: boolean;
}

/** The part of the limit that is leased at once: fewer writes against more that a crash can waste. */
const SLICES = 8n;

/** What to lease for spends that need `missing` more than is held. Never less, and at most a slice otherwise. */
export function sliceOf(limit: bigint, missing: bigint): bigint {
  const slice = (limit + SLICES - 1n) / SLICES;
  return slice > missing ? slice : missing;
}

export class Slices {
  readonly #held = new Map<Hash32, Held>();

  /** Units that a call with this limit may spend. */
  available(limit: bigint): bigint {
    return [...this.#held.values()].reduce((sum, held) => sum + freeOf(held, limit), 0n);
  }

  /** Spends units, lowest first. False, with nothing spent, if there are not enough. */
  spend(amount: bigint, limit: bigint): boolean {
    if (this.available(limit) < amount) return false;
    let missing = amount;
    const lowestFirst = [...this.#held.values()].sort((a, b) => (startOf(a) < startOf(b) ? -1 : 1));
    for (const held of lowestFirst) {
      const free = freeOf(held, limit);
      const taken = free < missing ? free : missing;
      held.spent += taken;
      missing -= taken;
    }
    return true;
  }

  /**
   * Counts a lease, or says where one that is held is now, or that it is not on the chain. One of the same name counts
   * once.
   */
  put(id: Hash32, landed: Landed | undefined): void {
    const held = this.#held.get(id);
    if (held === undefined && landed !== undefined) this.#held.set(id, { landed, spent: 0n, isThere: true });
    if (held === undefined) return;
    held.isThere = landed !== undefined;
    if (landed !== undefined) held.landed = landed;
  }

  /** Whether it was ever seen on the chain. */
  isHeld(id: Hash32): boolean {
    return this.#held.has(id);
  }

  /** Whether it is held and on the chain, as far as known. */
  isThere(id: Hash32): boolean {
    return this.#held.get(id)?.isThere === true;
  }

  /** What the leases that are on the chain hold of the counter. */
  get leased(): bigint {
    return [...this.#held.values()].reduce((sum, { landed, isThere }) => sum + (isThere ? landed.amount : 0n), 0n);
  }

  /** Leases that a reorganization of the chain may still move, or has dropped. */
  get unsettled(): Hash32[] {
    return [...this.#held].filter(([, { landed, isThere }]) => !(landed.isFinal && isThere)).map(([id]) => id);
  }
}

const startOf = ({ landed }: Held): bigint => landed.used - landed.amount;

function freeOf({ landed, spent, isThere }: Held, limit: bigint): bigint {
  const end = landed.used < limit ? landed.used : limit;
  const free = end - landed.used + landed.amount - spent;
  return isThere && free > 0n ? free : 0n;
}
