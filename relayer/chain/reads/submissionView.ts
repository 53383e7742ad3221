/** What a caller sees of a write. */
import type { AccountId, Hash32 } from "../../../protocol/ids";
import { sameResult } from "../abi/receipts";
import type { CarriedWrite, WriteRow } from "../submissions/rows";
import { hasOutcome, type SubmissionState } from "../submissions/states";
import type { SubmissionFailure, SubmissionId, SubmissionView } from "../types";

/** A write as `GET /submissions/:id` shows it. */
export const viewOf = (write: CarriedWrite): SubmissionView => ({
  id: write.id as SubmissionId,
  accountId: write.account_id as AccountId,
  kind: write.kind,
  state: stateOf(write),
  ...(write.hash === null ? {} : { transactionHash: write.hash as Hash32 }),
  ...(write.block_number === null ? {} : { blockNumber: write.block_number }),
  ...answerOf(write, write.charged),
  // The first outcome: it charged what was held, if anything.
  ...(write.before === null ? {} : { before: answerOf(write.before, write.billed) }),
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

const answerOf = ({ result, error }: Partial<Pick<WriteRow, "result" | "error">>, isCharged = false): Answer => ({
  ...(result ? { result } : {}),
  ...(error ? { error: isCharged ? (error as SubmissionFailure) : uncharged(error as SubmissionFailure) } : {}),
});

/** What is stored says `charged` of each failure that has cost gas, also where its account did not pay for it. */
function uncharged(error: SubmissionFailure): SubmissionFailure {
  const { charged: _, ...facts } = error.facts;
  return { ...error, facts };
}
