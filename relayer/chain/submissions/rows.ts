/** Rows of submissions, and their outcomes. */
import { randomBytes } from "node:crypto";
import type { Selectable } from "kysely";
import type { SubmissionAttemptsTable, SubmissionsTable } from "../../store/tables/chain";
import type { SubmissionFailure, SubmissionId, WriteResult } from "../types";

export type SubmissionRow = Selectable<SubmissionsTable>;
export type AttemptRow = Selectable<SubmissionAttemptsTable>;

/** The `kind` of a batch's row. */
export const BATCH = "batch";

export const newSubmissionId = (): SubmissionId => randomBytes(16).toString("hex") as SubmissionId;
export const parseSubmissionId = (text: string): SubmissionId | undefined =>
  /^[0-9a-f]{32}$/.test(text) ? (text as SubmissionId) : undefined;

/** The row that holds a nonce, and the batch members it carries; none for single submissions, fillers and top-ups. */
export interface Unit {
  readonly row: SubmissionRow;
  readonly members: readonly SubmissionRow[];
}

export interface Outcome {
  readonly state: "mined" | "failed" | "expired";
  readonly transactionHash?: string;
  readonly block?: { readonly number: number; readonly hash: string };
  readonly result?: WriteResult;
  readonly error?: SubmissionFailure;
  /** It was mined, successfully or not. */
  readonly charged: boolean;
}
