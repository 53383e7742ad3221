/** The states of a submission. Use these predicates instead of comparing states. */
import { sql } from "kysely";

export const SUBMISSION_STATES = [
  "reserved",
  "signed",
  "sent",
  "mined",
  "confirmed",
  "failed",
  "expired",
  "changed",
] as const;

/**
 * reserved: has its nonce · signed: bytes and hash are stored · sent: a node accepted or knows the hash · mined:
 * receipt with status 1 · confirmed: at the configured depth · failed: mined and reverted, or never sent · expired: its
 * nonce was used otherwise · changed: after a reorg the outcome differs from the reported one.
 */
export type SubmissionState = (typeof SUBMISSION_STATES)[number];

/** States without an outcome yet. */
export const OPEN_STATES = ["reserved", "signed", "sent"] as const satisfies readonly SubmissionState[];

/** For `in (…)` in queries. */
export const OPEN_LITERALS = sql.join(OPEN_STATES.map((state) => sql.lit(state)));

/**
 * For queries. A literal, because a prepared statement with a bound state cannot use the partial index of open
 * submissions.
 */
export const IS_OPEN = sql<boolean>`submissions.state in (${OPEN_LITERALS})`;

const OPEN: ReadonlySet<SubmissionState> = new Set(OPEN_STATES);

export const hasOutcome = (state: SubmissionState): boolean => !OPEN.has(state);
/** No transaction was ever signed, so none can exist elsewhere. */
export const wasNeverSigned = (state: SubmissionState): boolean => state === "reserved";
