/** Batches credit holds requested in the same tick, as those of a batch of writes are, into one statement. */
import { MAX_BATCH_WRITES } from "../../protocol/executor";
import type { Db } from "../store/database";
import { holdWrites, type WriteHold } from "./holds";

interface Asked {
  readonly hold: WriteHold;
  readonly resolve: (isHeld: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class WriteHolds {
  #asked: Asked[] = [];
  #isDue = false;
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Resolves to false when balance or cap do not allow it. */
  hold(hold: WriteHold): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ hold, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      void this.#send(this.#take());
      if (this.#asked.length > 0) this.#schedule();
    });
  }

  /** One per account: whether a second hold fits depends on the outcome of the first. */
  #take(): readonly Asked[] {
    const accounts = new Set<string>();
    const taken: Asked[] = [];
    const left: Asked[] = [];
    for (const asked of this.#asked) {
      const fits = taken.length < MAX_BATCH_WRITES && !accounts.has(asked.hold.accountId);
      (fits ? taken : left).push(asked);
      accounts.add(asked.hold.accountId);
    }
    this.#asked = left;
    return taken;
  }

  async #send(taken: readonly Asked[]): Promise<void> {
    try {
      const held = await holdWrites(
        this.#db,
        taken.map(({ hold }) => hold),
      );
      for (const { hold, resolve } of taken) resolve(held.has(hold.id));
    } catch (error) {
      for (const { reject } of taken) reject(error);
    }
  }
}
