/** Rows of transactions and writes, their outcomes, and what a caller sees of them. */
import { randomBytes } from "node:crypto";
import type { Selectable } from "kysely";
import type { AccountId, Hash32 } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { AttemptsTable, TransactionsTable, WritesTable } from "../../store/tables/chain";
import { sameResult } from "../abi/receipts";
import type { SubmissionFailure, SubmissionId, SubmissionView, WriteResult } from "../types";
import { hasOutcome, type SubmissionState } from "./states";

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
  /** It was mined, successfully or not. */
  readonly charged: boolean;
}

/** A write as `GET /submissions/:id` shows it. */
export const viewOf = (write: CarriedWrite): SubmissionView => ({
  id: write.id as SubmissionId,
  accountId: write.account_id as AccountId,
  kind: write.kind,
  state: stateOf(write),
  ...(write.hash === null ? {} : { transactionHash: write.hash as Hash32 }),
  ...(write.block_number === null ? {} : { blockNumber: write.block_number }),
  ...answerOf(write),
  ...(write.before === null ? {} : { before: answerOf(write.before) }),
  charged: write.charged,
  createdAt: write.created_at,
});

function stateOf(write: CarriedWrite): SubmissionState {
  const { state, carrier_state: carrier, before } = write;
  if (state === "carried" && carrier === "signed") return "signed";
  if (state === "carried" && carrier === "pending") return "sent";
  // A transaction that did not carry it out says nothing about the write.
  if (!hasOutcome(write)) return "reserved";
  if (before !== null && !isSameAnswer(answerOf(before), answerOf(write))) return "changed";
  if (state === "done") return carrier === "confirmed" ? "confirmed" : "mined";
  return state === "failed" ? "failed" : "expired";
}

type Answer = Pick<SubmissionView, "result" | "error">;

const isSameAnswer = (before: Answer, now: Answer): boolean =>
  before.error?.code === now.error?.code && sameResult(before.result, now.result);

const answerOf = ({ result, error }: Partial<Pick<WriteRow, "result" | "error">>): Answer => ({
  ...(result ? { result } : {}),
  ...(error ? { error: error as SubmissionFailure } : {}),
});
