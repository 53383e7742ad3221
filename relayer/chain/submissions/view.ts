/** A submission as `GET /submissions/:id` shows it. */
import type { AccountId, Hash32 } from "../../../protocol/ids";
import type { KeptFailure } from "../../store/tables/chain";
import type { SubmissionFailure, SubmissionId, SubmissionView, WriteResult } from "../types";
import type { SubmissionRow } from "./rows";

export function viewOf(row: SubmissionRow): SubmissionView {
  return {
    id: row.id as SubmissionId,
    accountId: row.account_id as AccountId,
    kind: row.kind,
    state: row.state,
    ...(row.transaction_hash === null ? {} : { transactionHash: row.transaction_hash as Hash32 }),
    ...(row.block_number === null ? {} : { blockNumber: row.block_number }),
    ...(row.result === null ? {} : { result: row.result as WriteResult }),
    ...(row.error === null ? {} : { error: failureOfKept(row.error) }),
    ...(row.before === null ? {} : { before: beforeOf(row.before) }),
    charged: row.charged,
    createdAt: row.created_at,
  };
}

function beforeOf({ result, error }: NonNullable<SubmissionRow["before"]>): NonNullable<SubmissionView["before"]> {
  return {
    ...(result === undefined ? {} : { result: result as WriteResult }),
    ...(error === undefined ? {} : { error: failureOfKept(error) }),
  };
}

const failureOfKept = (kept: KeptFailure): SubmissionFailure => ({
  code: kept.code as SubmissionFailure["code"],
  detail: kept.detail,
  facts: kept.facts,
});
