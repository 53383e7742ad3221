/** Derives the outcome of a submission from its receipt. */
import type { Address } from "../../../protocol/ids";
import { BATCH, type Outcome, type SubmissionRow, type Unit } from "./rows";
import type { DecodedLog } from "../abi/logs";
import { eventsOf, failedCalls, isOf, resultOf, type Receipt } from "../abi/receipts";
import { revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import { forwardOutcomes } from "./forwardOutcomes";
import { reasonOf, unknownReason } from "./revertReason";
import type { TransactionKind } from "./signing";
import type { SubmissionFailure } from "../types";

const NONCE_LOST: SubmissionFailure = {
  code: "chain_unavailable",
  detail:
    "The write was overtaken by a transaction this service did not send and did not land. Nothing was charged; make it again.",
  facts: {},
};

const GIVEN_UP: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The write was given up before it landed. Nothing was charged; make it again.",
  facts: {},
};

export const FAILED_TOGETHER: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The transaction this write shared with others came to nothing. Nothing was charged; make it again.",
  facts: {},
};

/** Outcomes, by id, of the unit's row and all its members. */
export async function outcomesOf(
  rpc: RpcClient,
  contract: Address,
  unit: Unit,
  does: TransactionKind,
  receipt: Receipt,
): Promise<ReadonlyMap<string, Outcome>> {
  const { row, members } = unit;
  const where = {
    transactionHash: receipt.transactionHash,
    block: { number: Number(receipt.blockNumber), hash: receipt.blockHash },
  };
  if (does === "nothing" && row.kind === "filler")
    return new Map([[row.id, { ...where, state: "mined", result: {}, charged: true }]]);
  if (does === "nothing") return ofAll(unit, { ...where, state: "expired", error: GIVEN_UP, charged: false });
  const isDone = BigInt(receipt.status) === 1n;
  // A batch reduced to one write is sent as that write.
  const [only = row] = members;
  // None are left in a batch that was separated, when a reorg opens it again.
  const isShared = row.kind === BATCH && members.length !== 1;
  if (isShared && !isDone) return ofAll(unit, { ...where, state: "failed", error: FAILED_TOGETHER, charged: false });
  const carriedOut: [string, Outcome] = [row.id, { ...where, state: "mined", result: {}, charged: true }];
  if (only.signer !== null) {
    const carried = members.length === 0 ? [row] : members;
    return new Map([carriedOut, ...(await forwardOutcomes(rpc, contract, carried, receipt, where))]);
  }
  const events = eventsOf(receipt, contract);
  if (isShared) return new Map([carriedOut, ...batchOutcomes(members, events, where)]);
  if (isDone) return ofAll(unit, { ...where, state: "mined", result: resultOf(events), charged: true });
  const call = {
    from: receipt.from,
    to: contract,
    data: only.calldata,
    gas: `0x${Number(row.gas_limit ?? 0).toString(16)}`,
  };
  const { facts, ...reason } = await reasonOf(rpc, call, receipt);
  const error = { ...reason, facts: { ...facts, charged: true, transaction_hash: receipt.transactionHash } };
  return ofAll(unit, { ...where, state: "failed", error, charged: true });
}

/** The nonce was used by a foreign transaction. */
export const lostOutcomes = (unit: Unit): ReadonlyMap<string, Outcome> =>
  ofAll(unit, { state: "expired", error: NONCE_LOST, charged: false });

const ofAll = ({ row, members }: Unit, outcome: Outcome): ReadonlyMap<string, Outcome> =>
  new Map([row, ...members].map(({ id }) => [id, outcome]));

/** In a batch, a failed call is not charged. */
function batchOutcomes(
  members: readonly SubmissionRow[],
  events: readonly DecodedLog[],
  where: Pick<Outcome, "transactionHash" | "block">,
): [string, Outcome][] {
  const failed = failedCalls(events);
  return members.map((member, index): [string, Outcome] => {
    const reason = failed.get(index);
    if (reason === undefined) {
      const own = events.filter((event) => isOf(member.account_id, event));
      return [member.id, { ...where, state: "mined", result: resultOf(own), charged: true }];
    }
    const named = revertError(reason);
    const { code, detail, facts } = named.code === "internal_error" ? unknownReason : named;
    const error = { code, detail, facts: { ...facts, transaction_hash: where.transactionHash } };
    return [member.id, { ...where, state: "failed", error, charged: false }];
  });
}
