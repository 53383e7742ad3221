/**
 * A quantity shared by all runs, such as memory for bodies in transit. Granted to accounts round-robin; none holds more
 * than its share.
 */

export interface BudgetOptions {
  readonly total: number;
  /** The most one account may hold at once. */
  readonly share: number;
}

/** Returns what was taken; idempotent. */
export type Release = () => void;

interface Waiting {
  readonly amount: number;
  readonly grant: (release: Release) => void;
}

export class Budget {
  #taken = 0;
  readonly #held = new Map<string, number>();
  /** Insertion order is the round-robin order. */
  readonly #queues = new Map<string, Waiting[]>();
  readonly #options: BudgetOptions;

  constructor(options: BudgetOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /**
   * Resolves when the amount is available; an amount above the share counts as the share. Rejects when the signal is
   * aborted first.
   */
  take(account: string, amount: number, signal?: AbortSignal): Promise<Release> {
    return new Promise((grant, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const waiting: Waiting = {
        amount: Math.min(amount, this.#options.share),
        grant: (release) => (signal?.removeEventListener("abort", leave), grant(release)),
      };
      const leave = (): void => {
        this.#leave(account, waiting);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", leave, { once: true });
      const queue = this.#queues.get(account);
      if (queue === undefined) this.#queues.set(account, [waiting]);
      else queue.push(waiting);
      this.#serve();
    });
  }

  #serve(): void {
    for (const [account, queue] of [...this.#queues]) {
      const [first] = queue;
      if (first === undefined || (this.#held.get(account) ?? 0) + first.amount > this.#options.share) continue;
      // Requests behind one that does not fit wait as well: otherwise large amounts would starve.
      if (this.#taken + first.amount > this.#options.total) return;
      this.#queues.delete(account);
      queue.shift();
      if (queue.length > 0) this.#queues.set(account, queue);
      this.#grant(account, first);
      return this.#serve();
    }
  }

  #grant(account: string, { amount, grant }: Waiting): void {
    this.#hold(account, amount);
    let isHeld = true;
    grant(() => {
      if (!isHeld) return;
      isHeld = false;
      this.#hold(account, -amount);
      this.#serve();
    });
  }

  #hold(account: string, amount: number): void {
    this.#taken += amount;
    const held = (this.#held.get(account) ?? 0) + amount;
    if (held === 0) this.#held.delete(account);
    else this.#held.set(account, held);
  }

  #leave(account: string, waiting: Waiting): void {
    const queue = this.#queues.get(account);
    if (!queue?.includes(waiting)) return;
    queue.splice(queue.indexOf(waiting), 1);
    if (queue.length === 0) this.#queues.delete(account);
    this.#serve();
  }
}
