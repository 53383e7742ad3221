/** The states of transactions and writes. Use these predicates instead of comparing states. */
import { sql } from "kysely";
import type { SUBMISSION_STATES } from "../../../protocol/http/history";

/**
 * reserved: has its nonce · signed: bytes and hash are stored · pending: a node accepted or knows the hash · mined: an
 * attempt has a receipt · confirmed: at the configured depth · displaced: a transaction that is not ours has its nonce,
 * and is final · dropped: never signed, its nonce was given back.
 */
export type TransactionState = "reserved" | "signed" | "pending" | "mined" | "confirmed" | "displaced" | "dropped";

/**
 * carried: by a transaction whose fate is open or failed it together with others · waiting: as carried, stored by
 * relayers before this one · done: executed · failed: reverted, refused or never signed · abandoned: a no-op used the
 * nonce.
 */
export type WriteState = "waiting" | "carried" | "done" | "failed" | "abandoned";

/** As `GET /submissions/:id` and the metrics name them; `changed`: the outcome differs from one before a reorg. */
export type SubmissionState = (typeof SUBMISSION_STATES)[number];

/** Conditions of queries. Literals, since a prepared statement with a bound state cannot use a partial index. */
export const TRANSACTION_IS_OPEN = sql<boolean>`transactions.state in ('reserved', 'signed', 'pending')`;
export const WRITE_IS_OPEN = sql<boolean>`writes.state in ('waiting', 'carried')`;
/** For another transaction: its own is final and did not carry it out. */
export const WRITE_WAITS = sql<boolean>`${WRITE_IS_OPEN} and transactions.state in ('confirmed', 'displaced')`;

export const isOpen = ({ state }: { readonly state: TransactionState }): boolean =>
  state === "reserved" || state === "signed" || state === "pending";
export const hasOutcome = ({ state }: { readonly state: WriteState }): boolean =>
  state !== "waiting" && state !== "carried";
