/** Derives the outcome of a submission from its receipt. */
import { targetOf } from "../../../protocol/budgets";
import type { Address } from "../../../protocol/ids";
import { BATCH, type Outcome, type SubmissionRow, type Unit } from "./rows";
import type { DecodedLog } from "../abi/logs";
import { eventsByAccount, eventsOf, failedCalls, resultOf, type Receipt } from "../abi/receipts";
import { revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import { forwardOutcomes } from "./forwardOutcomes";
import { reasonOf, unknownReason } from "./revertReason";
import type { TransactionKind } from "./signing";
import type { SubmissionFailure } from "../types";

type WhyNothing = "overtaken" | "given up" | "failed together";
const WHY_NOTHING: Readonly<Record<WhyNothing, string>> = {
  overtaken: "A transaction that this service did not send used this write's nonce; the write was not executed.",
  "given up": "The write was cancelled before it was mined.",
  "failed together": "The transaction that the write shared with others failed.",
};
/** A submission is identified by its signature: sending it again returns this outcome, though it is valid on chain. */
const SIGN_AGAIN =
  "Nothing was charged. Until its deadline the request may still be sent by whoever has it; " +
  "sign another one for its nonce.";

/** The failure of a write that had no effect, for a reason outside the write. */
export const cameToNothing = ({ signer }: Pick<SubmissionRow, "signer">, why: WhyNothing): SubmissionFailure => ({
  code: "chain_unavailable",
  detail: `${WHY_NOTHING[why]} ${signer === null ? "Nothing was charged; make it again." : SIGN_AGAIN}`,
  facts: {},
});

/** Outcomes, by id, of the unit's row and all its members. */
export async function outcomesOf(
  rpc: RpcClient,
  contract: Address,
  unit: Unit,
  does: TransactionKind,
  receipt: Receipt,
): Promise<ReadonlyMap<string, Outcome>> {
  const { row, members } = unit;
  const where = placeOf(receipt);
  if (does === "nothing" && row.kind === "filler")
    return new Map([[row.id, { ...where, state: "mined", result: {}, charged: true }]]);
  if (does === "nothing") return failuresOf(unit, "given up", { ...where, state: "expired" });
  const isDone = BigInt(receipt.status) === 1n;
  // A batch with one member left is sent as that single write.
  const [only = row] = members;
  // A batch without members: all were sent alone, then a reorg beyond finality reopened it.
  const isShared = row.kind === BATCH && members.length !== 1;
  if (isShared && !isDone) return failuresOf(unit, "failed together", { ...where, state: "failed" });
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
    to: targetOf(only.calldata ?? "0x", contract),
    data: only.calldata,
    gas: `0x${Number(row.gas_limit ?? 0).toString(16)}`,
  };
  const { facts, ...reason } = await reasonOf(rpc, call, receipt);
  const error = { ...reason, facts: { ...facts, charged: true, transaction_hash: receipt.transactionHash } };
  return ofAll(unit, { ...where, state: "failed", error, charged: true });
}

/**
 * The transaction of a batch failed as a whole. Members whose outcome was reported before a reorg are not sent again.
 */
export const failedTogether = ({ members }: Unit, does: TransactionKind, receipt: Receipt): boolean =>
  does === "write" &&
  members.length > 1 &&
  BigInt(receipt.status) !== 1n &&
  members.every(({ before }) => before === null);

/** The outcome of a batch that failed as a whole, without its members, which are still open. */
export const outcomeOfFailed = (row: SubmissionRow, receipt: Receipt): ReadonlyMap<string, Outcome> =>
  failuresOf({ row, members: [] }, "failed together", { ...placeOf(receipt), state: "failed" });

/** The nonce was used by a foreign transaction. */
export const lostOutcomes = (unit: Unit): ReadonlyMap<string, Outcome> =>
  failuresOf(unit, "overtaken", { state: "expired" });

const placeOf = ({ transactionHash, blockNumber, blockHash }: Receipt): Pick<Outcome, "transactionHash" | "block"> => ({
  transactionHash,
  block: { number: Number(blockNumber), hash: blockHash },
});

const failuresOf = (
  { row, members }: Unit,
  why: WhyNothing,
  outcome: Omit<Outcome, "error" | "charged">,
): ReadonlyMap<string, Outcome> =>
  new Map([row, ...members].map((each) => [each.id, { ...outcome, error: cameToNothing(each, why), charged: false }]));

const ofAll = ({ row, members }: Unit, outcome: Outcome): ReadonlyMap<string, Outcome> =>
  new Map([row, ...members].map(({ id }) => [id, outcome]));

/** In a batch, a failed call is not charged. */
function batchOutcomes(
  members: readonly SubmissionRow[],
  events: readonly DecodedLog[],
  where: Pick<Outcome, "transactionHash" | "block">,
): [string, Outcome][] {
  const failed = failedCalls(events);
  const eventsOfAccount = eventsByAccount(events);
  return members.map((member, index): [string, Outcome] => {
    const reason = failed.get(index);
    if (reason === undefined) {
      return [
        member.id,
        { ...where, state: "mined", result: resultOf(eventsOfAccount(member.account_id)), charged: true },
      ];
    }
    const named = revertError(reason);
    const { code, detail, facts } = named.code === "internal_error" ? unknownReason : named;
    const error = { code, detail, facts: { ...facts, transaction_hash: where.transactionHash } };
    return [member.id, { ...where, state: "failed", error, charged: false }];
  });
}
