/**
 * Waits for outcomes: from the feed for submissions that this instance's transaction monitor watches, by polling the
 * store for those of other instances. One query covers all awaited submissions.
 */
import type { OutcomeFeed } from "./outcomeFeed";
import type { SubmissionRecords } from "./records";
import type { SubmissionRow } from "./rows";

export interface OutcomeWatchOptions {
  readonly records: Pick<SubmissionRecords, "ended">;
  readonly outcomes: Pick<OutcomeFeed, "subscribe">;
}

type Wake = (row?: SubmissionRow) => void;

const BETWEEN_LOOKS_MS = 250;

export class OutcomeWatch {
  readonly #awaited = new Map<string, Set<Wake>>();
  #timer: NodeJS.Timeout | undefined;
  readonly #options: OutcomeWatchOptions;

  constructor(options: OutcomeWatchOptions) {
    this.#options = options;
    options.outcomes.subscribe((row) => this.#tell(row));
  }

  /** The row once it has an outcome, which it may have already; undefined at `deadline` (ms since the epoch). */
  next(id: string, deadline: number): Promise<SubmissionRow | undefined> {
    const listeners = this.#awaited.get(id) ?? new Set();
    this.#awaited.set(id, listeners);
    this.#timer ??= setTimeout(() => void this.#look(), BETWEEN_LOOKS_MS);
    return new Promise((resolve) => {
      const wake: Wake = (row) => {
        clearTimeout(timer);
        listeners.delete(wake);
        if (listeners.size === 0) this.#awaited.delete(id);
        resolve(row);
      };
      const timer = setTimeout(wake, Math.max(0, deadline - Date.now()));
      listeners.add(wake);
    });
  }

  #tell(row: SubmissionRow): void {
    for (const wake of [...(this.#awaited.get(row.id) ?? [])]) wake(row);
  }

  async #look(): Promise<void> {
    const ids = [...this.#awaited.keys()];
    // A failed query loses nothing: the next one finds the outcomes.
    const ended = ids.length === 0 ? [] : await this.#options.records.ended(ids).catch(() => []);
    this.#timer = undefined;
    for (const row of ended) this.#tell(row);
    if (this.#awaited.size > 0) this.#timer ??= setTimeout(() => void this.#look(), BETWEEN_LOOKS_MS);
  }
}
