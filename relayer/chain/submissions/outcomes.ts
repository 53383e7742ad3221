/** From a receipt to the outcome of a submission. */
import { ERRORS, type KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import { BATCH, type Outcome, type SubmissionRow, type Unit } from "./records";
import type { DecodedLog } from "../abi/logs";
import { eventsOf, failedCalls, isOf, resultOf, type Receipt } from "../abi/receipts";
import { revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import { RpcError } from "../../../protocol/rpc/errors";
import type { TransactionKind } from "./signing";
import type { SubmissionFailure } from "../types";

const NONCE_LOST: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The write was overtaken by a transaction this service did not send and did not land. Nothing was charged; make it again.",
  facts: {},
};

const GIVEN_UP: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The write was given up before it landed. Nothing was charged; make it again.",
  facts: {},
};

const OUT_OF_GAS: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The transaction this write shared with others came to nothing. Nothing was charged; make it again.",
  facts: {},
};

/** Of the unit's row and of all it carries, by id. */
export async function outcomesOf(
  rpc: RpcClient,
  contract: Address,
  unit: Unit,
  does: TransactionKind,
  receipt: Receipt,
): Promise<ReadonlyMap<string, Outcome>> {
  const { row, members } = unit;
  const where = { transactionHash: receipt.transactionHash, block: { number: Number(receipt.blockNumber), hash: receipt.blockHash } };
  if (does === "nothing" && row.kind === "filler") return new Map([[row.id, { ...where, state: "mined", result: {}, charged: true }]]);
  if (does === "nothing") return ofAll(unit, { ...where, state: "expired", error: GIVEN_UP, charged: false });
  const events = eventsOf(receipt, contract);
  const isDone = BigInt(receipt.status) === 1n;
  if (row.kind === BATCH && members.length > 1) {
    if (!isDone) return ofAll(unit, { ...where, state: "failed", error: OUT_OF_GAS, charged: false });
    return new Map([[row.id, { ...where, state: "mined", result: {}, charged: true }], ...batchOutcomes(members, events, where)]);
  }
  // A batch of which one write was left is sent as that write.
  const [only = row] = members;
  const outcome: Outcome = isDone
    ? { ...where, state: "mined", result: resultOf(events), charged: true }
    : { ...where, state: "failed", error: await reasonOf(rpc, contract, { ...only, gas_limit: row.gas_limit }, receipt), charged: true };
  return ofAll(unit, outcome);
}

/** The nonce went to a transaction of somebody else. */
export const lostOutcomes = (unit: Unit): ReadonlyMap<string, Outcome> => ofAll(unit, { state: "expired", error: NONCE_LOST, charged: false });

const ofAll = ({ row, members }: Unit, outcome: Outcome): ReadonlyMap<string, Outcome> => new Map([row, ...members].map(({ id }) => [id, outcome]));

/** What failed alone cost its author nothing. */
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
    const { code, detail, facts } = revertError(reason);
    const error =
      code === "internal_error"
        ? reverted({ transaction_hash: where.transactionHash })
        : { code, detail, facts: { ...facts, transaction_hash: where.transactionHash } };
    return [member.id, { ...where, state: "failed", error, charged: false }];
  });
}

const reverted = (facts: SubmissionFailure["facts"]): SubmissionFailure => ({
  code: "write_reverted",
  detail: `${ERRORS.write_reverted.title}; the node does not say why.`,
  facts,
});

/** Why it reverted: the same call after its block, where what stood in its way still stands, else before it. */
async function reasonOf(rpc: RpcClient, contract: Address, row: SubmissionRow, receipt: Receipt): Promise<SubmissionFailure> {
  const facts = { charged: true, transaction_hash: receipt.transactionHash };
  const call = { from: receipt.from, to: contract, data: row.calldata, gas: `0x${Number(row.gas_limit ?? 0).toString(16)}` };
  for (const block of [Number(receipt.blockNumber), Number(receipt.blockNumber) - 1]) {
    const error = await revertOf(rpc, call, block);
    if (error !== undefined) return { code: error.code, detail: error.detail, facts: { ...error.facts, ...facts } };
  }
  return reverted(facts);
}

async function revertOf(rpc: RpcClient, call: object, block: number): Promise<KeywrightError | undefined> {
  try {
    await rpc.call("eth_call", [call, `0x${block.toString(16)}`]);
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcError) || error.failure !== "reverted") return undefined;
    const named = revertError(error.data);
    return named.code === "internal_error" ? undefined : named;
  }
}
