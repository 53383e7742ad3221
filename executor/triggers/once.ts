/**
 * What has fired already, as far as this process knows: each cause begins at most once. Bounded by time, since no cause
 * may begin for longer, and in number; the relayers' rows keep the same promise for all machines.
 */
import { LRUCache } from "lru-cache";

const MOST_KNOWN = 500_000;

export class Once {
  readonly #begun: LRUCache<string, true>;

  constructor(knownForMs: number) {
    this.#begun = new LRUCache({ max: MOST_KNOWN, ttl: knownForMs });
  }

  has(name: string): boolean {
    return this.#begun.has(name);
  }

  /** False if it has begun before. */
  begin(name: string): boolean {
    if (this.#begun.has(name)) return false;
    this.#begun.set(name, true);
    return true;
  }

  /** Nothing ran: it may begin again. */
  forget(name: string): void {
    this.#begun.delete(name);
  }
}
