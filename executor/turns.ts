/**
 * Turns on the one event loop that serves everybody. What a run asks of the keyholder (a signature, a large message to be read) is short but never free, and
 * a run may ask a hundred times at once: one piece of work is done at a time, accounts take turns, and between two of them the loop gets at least as long
 * for everything else.
 */
const NO_REST_BELOW_MS = 1;

type Grant = () => void;

export class Turns {
  /** Insertion order is turn order: who had a turn goes to the end. */
  readonly #lines = new Map<string, Grant[]>();
  #isTaken = false;

  /** Resolves when it is `owner`'s turn. What is done before the next `await` is one turn's work. */
  take(owner: string): Promise<void> {
    return new Promise((grant) => {
      const line = this.#lines.get(owner);
      if (line === undefined) this.#lines.set(owner, [grant]);
      else line.push(grant);
      if (!this.#isTaken) this.#next();
    });
  }

  #next(): void {
    const first = this.#lines.entries().next();
    this.#isTaken = first.done !== true;
    if (first.done) return;
    const [owner, line] = first.value;
    const grant = line.shift();
    this.#lines.delete(owner);
    if (line.length > 0) this.#lines.set(owner, line);
    const startedAt = performance.now();
    grant?.();
    setImmediate(() => this.#rest(performance.now() - startedAt));
  }

  #rest(spentMs: number): void {
    if (spentMs < NO_REST_BELOW_MS) this.#next();
    else setTimeout(() => this.#next(), spentMs);
  }
}

/** There is one loop, so there is one rotation. */
export const loopTurns = new Turns();
