/**
 * Turns on the event loop that all requests share. Work for a run (a signature, reading a large message) is short, but
 * a run may request it a hundred times at once. So one piece is done at a time, accounts take turns, and between two
 * pieces the loop is free for other work for at least as long.
 */
const NO_REST_BELOW_MS = 1;

type Grant = () => void;

export class Turns {
  /** Insertion order is the order of turns: an owner that had a turn moves to the end. */
  readonly #lines = new Map<string, Grant[]>();
  #isTaken = false;

  /** Resolves at `owner`'s turn. The work until the next `await` is one turn. */
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

/** One event loop, so one instance. */
export const loopTurns = new Turns();
