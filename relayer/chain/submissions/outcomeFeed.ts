/** Tells whoever waits for it that a submission has an outcome. The transaction monitor publishes; nobody who listens is known to it. */
import type { SubmissionRow } from "./records";

export type OutcomeListener = (row: SubmissionRow) => void;

export class OutcomeFeed {
  readonly #listeners: OutcomeListener[] = [];

  /** Listeners stay for as long as the chain room. */
  subscribe(listener: OutcomeListener): void {
    this.#listeners.push(listener);
  }

  publish(row: SubmissionRow): void {
    for (const listener of this.#listeners) listener(row);
  }
}
