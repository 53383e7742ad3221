/** Rows of transactions and writes, and their outcomes. */
import { randomBytes } from "node:crypto";
import type { Selectable } from "kysely";
import type { Db } from "../../store/database";
import type { AttemptsTable, TransactionsTable, WritesTable } from "../../store/tables/chain";
import type { SubmissionFailure, SubmissionId, WriteResult } from "../types";

export type TransactionRow = Selectable<TransactionsTable>;
export type AttemptRow = Selectable<AttemptsTable>;
export type WriteRow = Selectable<WritesTable>;

/** A write, with the state and block of the transaction that carries it, or was the last to. */
export interface CarriedWrite extends WriteRow, Pick<TransactionRow, "hash" | "block_number" | "block_hash"> {
  readonly carrier_state: TransactionRow["state"];
}

/** A transaction and the writes that it carries; none for no-ops and top-ups. */
export interface Carrier {
  readonly transaction: TransactionRow;
  readonly writes: readonly CarriedWrite[];
}

/** Writes as their callers see them. */
export const carriedWrites = (db: Db) =>
  db
    .selectFrom("writes")
    .innerJoin("transactions", "transactions.id", "writes.transaction_id")
    .selectAll("writes")
    .select(["transactions.state as carrier_state", "transactions.hash"])
    .select(["transactions.block_number", "transactions.block_hash"]);

export const newSubmissionId = (): SubmissionId => randomBytes(16).toString("hex") as SubmissionId;
export const parseSubmissionId = (text: string): SubmissionId | undefined =>
  /^[0-9a-f]{32}$/.test(text) ? (text as SubmissionId) : undefined;

export interface Outcome {
  readonly state: "done" | "failed" | "abandoned";
  readonly result?: WriteResult;
  readonly error?: SubmissionFailure;
  /** It was mined, successfully or not, at its own cost: what is held for it, if anything, is charged. */
  readonly charged: boolean;
}
