/** Publishes outcomes of submissions, decoupling the transaction monitor from its listeners. */
import type { SubmissionRow } from "./rows";

export type OutcomeListener = (row: SubmissionRow) => void;

export class OutcomeFeed {
  readonly #listeners: OutcomeListener[] = [];

  /** Listeners live as long as the chain module. */
  subscribe(listener: OutcomeListener): void {
    this.#listeners.push(listener);
  }

  publish(row: SubmissionRow): void {
    for (const listener of this.#listeners) listener(row);
  }
}
