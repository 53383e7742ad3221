/**
 * The writes taken for one transaction. Each leaves the set once: stored with the transaction, queued again, or refused
 * with its reason.
 */
import type { InTurn, Waiting } from "./waitingWrite";

export interface TakenWritesOptions {
  /** Queues the write for a later transaction. */
  readonly again: (waiting: Waiting) => void;
  /** Releases the write's reservation and rejects it. */
  readonly refuse: (waiting: Waiting, error: unknown) => Promise<void>;
}

export class TakenWrites {
  readonly #left: Set<Waiting>;
  readonly #options: TakenWritesOptions;

  constructor(
    readonly all: readonly Waiting[],
    options: TakenWritesOptions,
  ) {
    this.#options = options;
    this.#left = new Set(all);
  }

  /** Removes a write that is stored, or queued again by the caller. */
  leave(waiting: Waiting): void {
    this.#left.delete(waiting);
  }

  later({ waiting }: InTurn): undefined {
    this.leave(waiting);
    this.#options.again(waiting);
    return undefined;
  }

  sendAlone(item: InTurn): undefined {
    item.waiting.alone = true;
    return this.later(item);
  }

  async drop(waiting: Waiting, error: unknown): Promise<undefined> {
    this.leave(waiting);
    await this.#options.refuse(waiting, error);
    return undefined;
  }

  async dropAll(error: unknown): Promise<void> {
    await Promise.all([...this.#left].map((waiting) => this.drop(waiting, error)));
  }

  /** A failure concerns only the write it belongs to. */
  async each<T extends { readonly waiting: Waiting }, R>(
    items: readonly T[],
    work: (item: T) => Promise<R>,
  ): Promise<R[]> {
    const done = await Promise.all(
      items.map((item): Promise<R | undefined> => work(item).catch((error: unknown) => this.drop(item.waiting, error))),
    );
    return done.filter((item): item is Awaited<R> & R => item !== undefined);
  }
}
