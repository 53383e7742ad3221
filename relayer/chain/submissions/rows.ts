/** Rows of transactions and writes, their outcomes, and what a caller sees of them. */
import { randomBytes } from "node:crypto";
import type { Selectable } from "kysely";
import type { AccountId, Hash32 } from "../../../protocol/ids";
import type { AttemptsTable, KeptFailure, TransactionsTable, WritesTable } from "../../store/tables/chain";
import { sameResult } from "../abi/receipts";
import type { SubmissionFailure, SubmissionId, SubmissionView, WriteResult } from "../types";
import type { SubmissionState } from "./states";

export type TransactionRow = Selectable<TransactionsTable>;
export type AttemptRow = Selectable<AttemptsTable>;
export type WriteRow = Selectable<WritesTable>;

/** A transaction and the writes that it carries; none for no-ops and top-ups. */
export interface Carrier {
  readonly transaction: TransactionRow;
  readonly writes: readonly WriteRow[];
}

/** A write with the transaction that carries it, or was the last to. */
export interface CarriedWrite extends WriteRow {
  readonly transaction: Pick<TransactionRow, "state" | "hash" | "block_number" | "block_hash">;
}

export const writesOf = ({ transaction, writes }: Carrier): readonly CarriedWrite[] =>
  writes.map((write) => ({ ...write, transaction }));

export const newSubmissionId = (): SubmissionId => randomBytes(16).toString("hex") as SubmissionId;
export const parseSubmissionId = (text: string): SubmissionId | undefined =>
  /^[0-9a-f]{32}$/.test(text) ? (text as SubmissionId) : undefined;

/** What became of a nonce: an attempt was mined, or a final transaction that is not ours has it. */
export type Fate =
  | {
      readonly state: "mined";
      readonly hash: string;
      readonly block: { readonly number: number; readonly hash: string };
    }
  | { readonly state: "displaced" };

export interface Outcome {
  readonly state: "done" | "failed" | "abandoned";
  readonly result?: WriteResult;
  readonly error?: SubmissionFailure;
  /** It was mined, successfully or not. */
  readonly charged: boolean;
}

/** A write as `GET /submissions/:id` shows it. */
export function viewOf(write: CarriedWrite): SubmissionView {
  const { hash, block_number: blockNumber } = write.transaction;
  return {
    id: write.id as SubmissionId,
    accountId: write.account_id as AccountId,
    kind: write.kind,
    state: stateOf(write),
    ...(hash === null ? {} : { transactionHash: hash as Hash32 }),
    ...(blockNumber === null ? {} : { blockNumber }),
    ...outcomeOf(write),
    ...(write.before === null ? {} : { before: outcomeOf(write.before) }),
    charged: write.charged,
    createdAt: write.created_at,
  };
}

function stateOf(write: CarriedWrite): SubmissionState {
  const { state, transaction } = write;
  if (state === "waiting") return "reserved";
  if (state === "carried") return OF_CARRIED[transaction.state] ?? "reserved";
  if (write.before !== null && !isSameAnswer(write.before, write)) return "changed";
  if (state === "done") return transaction.state === "confirmed" ? "confirmed" : "mined";
  return state === "failed" ? "failed" : "expired";
}

/** A transaction that did not carry it out says nothing about the write. */
const OF_CARRIED: Readonly<Partial<Record<CarriedWrite["transaction"]["state"], SubmissionState>>> = {
  signed: "signed",
  pending: "sent",
};

interface Kept {
  readonly result?: Readonly<Record<string, string>> | null;
  readonly error?: KeptFailure | null;
}

const isSameAnswer = (before: Kept, now: Kept): boolean =>
  before.error?.code === now.error?.code &&
  sameResult(
    (before.result ?? undefined) as WriteResult | undefined,
    (now.result ?? undefined) as WriteResult | undefined,
  );

function outcomeOf({ result, error }: Kept): Pick<SubmissionView, "result" | "error"> {
  return {
    ...(result === null || result === undefined ? {} : { result: result as WriteResult }),
    ...(error === null || error === undefined ? {} : { error: failureOf(error) }),
  };
}

const failureOf = ({ code, detail, facts }: KeptFailure): SubmissionFailure => ({
  code: code as SubmissionFailure["code"],
  detail,
  facts,
});
