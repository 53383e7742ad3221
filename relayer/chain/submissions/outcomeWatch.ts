/**
 * Waits for outcomes: from the feed for writes that this instance's transaction monitor watches, by polling the
 * store for those of other instances. One query covers all awaited writes.
 */
import { EventEmitter } from "node:events";
import type { Parts } from "./parts";
import type { CarriedWrite } from "./rows";
import { hasOutcome } from "./states";

/** Looks for outcomes that other instances have stored, in the time between two polls of a chain at rest. */
const LOOKS_PER_POLL = 4;

export class OutcomeWatch {
  /** Emits each awaited write under its id. */
  readonly #awaited = new EventEmitter<Record<string, [CarriedWrite]>>().setMaxListeners(0);
  #timer: NodeJS.Timeout | undefined;
  readonly #parts: Pick<Parts, "transactions" | "outcomes" | "tuning">;

  constructor(parts: Pick<Parts, "transactions" | "outcomes" | "tuning">) {
    this.#parts = parts;
    parts.outcomes.on("transaction", ({ writes }) => this.#note(writes.filter(hasOutcome)));
  }

  /** The write once it has an outcome, which it may have already; undefined at `deadline` (ms since the epoch). */
  next(id: string, deadline: number): Promise<CarriedWrite | undefined> {
    this.#lookLater();
    return new Promise((resolve) => {
      const wake = (write?: CarriedWrite): void => {
        clearTimeout(timer);
        this.#awaited.off(id, wake);
        resolve(write);
      };
      const timer = setTimeout(wake, Math.max(0, deadline - Date.now()));
      this.#awaited.on(id, wake);
    });
  }

  #note(ended: readonly CarriedWrite[]): void {
    for (const write of ended) this.#awaited.emit(write.id, write);
  }

  async #look(): Promise<void> {
    const ids = this.#awaited.eventNames();
    // A failed query loses nothing: the next one finds the outcomes.
    this.#note(ids.length === 0 ? [] : await this.#parts.transactions.ended(ids).catch(() => []));
    this.#timer = undefined;
    if (this.#awaited.eventNames().length > 0) this.#lookLater();
  }

  #lookLater(): void {
    this.#timer ??= setTimeout(() => void this.#look(), this.#parts.tuning.slowestPollMs / LOOKS_PER_POLL);
  }
}
