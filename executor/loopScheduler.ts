/**
 * Round-robin scheduling of short work on the event loop that all requests share. A run may request a hundred
 * signatures at once: one is made at a time, accounts alternate, and after each the loop is left to other work for at
 * least as long as it took.
 */
const NO_PAUSE_BELOW_MS = 1;

type Grant = () => void;

export class LoopScheduler {
  /** Insertion order is the round-robin order: an account that was served moves to the end. */
  readonly #queues = new Map<string, Grant[]>();
  #isBusy = false;

  /** Resolves when the account may use the loop: for its work until the next `await`. */
  slot(account: string): Promise<void> {
    return new Promise((grant) => {
      const queue = this.#queues.get(account);
      if (queue === undefined) this.#queues.set(account, [grant]);
      else queue.push(grant);
      if (!this.#isBusy) this.#next();
    });
  }

  #next(): void {
    const first = this.#queues.entries().next();
    this.#isBusy = first.done !== true;
    if (first.done) return;
    const [account, queue] = first.value;
    const grant = queue.shift();
    this.#queues.delete(account);
    if (queue.length > 0) this.#queues.set(account, queue);
    const startedAt = performance.now();
    grant?.();
    setImmediate(() => this.#pause(performance.now() - startedAt));
  }

  #pause(spentMs: number): void {
    if (spentMs < NO_PAUSE_BELOW_MS) this.#next();
    else setTimeout(() => this.#next(), spentMs);
  }
}

/** One event loop, so one instance. */
export const loopScheduler = new LoopScheduler();
