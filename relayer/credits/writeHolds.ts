/** Batches credit holds requested in the same tick, as those of a batch of writes are, into one statement. */
import { KeywrightError } from "../../protocol/errors";
import { MAX_BATCH_WRITES } from "../../protocol/executor";
import type { Db } from "../store/database";
import { holdWrites, type WriteHold } from "./holds";

interface PendingHold {
  readonly hold: WriteHold;
  readonly resolve: (isHeld: boolean) => void;
  readonly reject: (error: unknown) => void;
  /** Once more, after its row was missing. */
  readonly isSecond?: boolean;
}

export class WriteHolds {
  #pending: PendingHold[] = [];
  #isDue = false;
  readonly #db: Db;
  readonly #ensureRows: (hold: WriteHold) => Promise<void>;

  /** `ensureRows`: called for a hold that lacks the row of its account or key, which is then tried once more. */
  constructor(db: Db, ensureRows: (hold: WriteHold) => Promise<void> = async () => undefined) {
    this.#db = db;
    this.#ensureRows = ensureRows;
  }

  /** Resolves to false when balance or cap do not allow it. */
  hold(hold: WriteHold): Promise<boolean> {
    return new Promise((resolve, reject) => this.#add({ hold, resolve, reject }));
  }

  #add(pending: PendingHold): void {
    this.#pending.push(pending);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      void this.#send(this.#take());
      if (this.#pending.length > 0) this.#schedule();
    });
  }

  /** One per account: whether a second hold fits depends on the outcome of the first. */
  #take(): readonly PendingHold[] {
    const accounts = new Set<string>();
    const taken: PendingHold[] = [];
    const left: PendingHold[] = [];
    for (const one of this.#pending) {
      const fits = taken.length < MAX_BATCH_WRITES && !accounts.has(one.hold.accountId);
      (fits ? taken : left).push(one);
      accounts.add(one.hold.accountId);
    }
    this.#pending = left;
    return taken;
  }

  async #send(taken: readonly PendingHold[]): Promise<void> {
    try {
      const { held, withoutRow } = await holdWrites(
        this.#db,
        taken.map(({ hold }) => hold),
      );
      for (const one of taken)
        if (withoutRow.has(one.hold.id) && one.isSecond !== true) void this.#again(one);
        else one.resolve(held.has(one.hold.id));
    } catch (error) {
      // The database refused the statement, so nothing is held: one write must not keep the others from theirs. Where
      // its answer was lost, nobody knows.
      const isRefused = !(error instanceof KeywrightError);
      if (taken.length > 1 && isRefused) for (const one of taken) await this.#send([one]);
      else for (const { reject } of taken) reject(error);
    }
  }

  async #again(one: PendingHold): Promise<void> {
    try {
      await this.#ensureRows(one.hold);
      this.#add({ ...one, isSecond: true });
    } catch (error) {
      one.reject(error);
    }
  }
}
