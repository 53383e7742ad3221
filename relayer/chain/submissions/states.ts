/** The life of a submission. Nobody compares states by hand: ask these predicates. */
import { sql } from "kysely";

export const SUBMISSION_STATES = ["reserved", "signed", "sent", "mined", "confirmed", "failed", "expired", "changed"] as const;

/**
 * reserved: has its nonce · signed: bytes and hash are stored · sent: a node accepted or knows the hash · mined: receipt with status 1 ·
 * confirmed: as deep as configured · failed: mined and reverted, or never sent · expired: its nonce went to something else · changed: a reorg gave
 * another outcome than the one answered.
 */
export type SubmissionState = (typeof SUBMISSION_STATES)[number];

/** Something is still to be done before the outcome is known. */
export const OPEN_STATES = ["reserved", "signed", "sent"] as const satisfies readonly SubmissionState[];

/** For queries: as a literal, because in a prepared statement a bound state cannot use the index of open submissions. */
export const IS_OPEN = sql<boolean>`submissions.state in (${sql.join(OPEN_STATES.map((state) => sql.lit(state)))})`;

const OPEN: ReadonlySet<SubmissionState> = new Set(OPEN_STATES);
const SUCCEEDED: ReadonlySet<SubmissionState> = new Set(["mined", "confirmed"]);

export const isOpen = (state: SubmissionState): boolean => OPEN.has(state);
export const hasOutcome = (state: SubmissionState): boolean => !OPEN.has(state);
export const hasSucceeded = (state: SubmissionState): boolean => SUCCEEDED.has(state);
/** No transaction of it was ever signed, so that nobody can hold one. */
export const wasNeverSigned = (state: SubmissionState): boolean => state === "reserved";
