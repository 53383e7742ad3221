/** Derives the outcomes of writes from the receipt of the transaction that carried them. */
import { targetOf } from "../../../protocol/budgets";
import type { Address } from "../../../protocol/ids";
import { eventsByAccount, eventsOf, failedCalls, resultOf, type Receipt } from "../abi/receipts";
import { revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";
import { forwardOutcomes } from "./forwards";
import type { AttemptRow, Carrier, Fate, Outcome, WriteRow } from "./rows";
import { reasonOf, unknownReason } from "./simulation";

const WHY_NOTHING = {
  abandoned: "The write was cancelled before it was mined.",
  "failed together": "The transaction that the write shared with others failed.",
} as const;
/** A request is identified by its signature: sending it again returns this outcome, though it is valid on chain. */
const SIGN_AGAIN =
  "Nothing was charged. Until its deadline the request may still be sent by whoever has it; " +
  "sign another one for its nonce.";

/** The failure of a write that had no effect, for a reason outside the write. */
export const cameToNothing = (
  { signer }: Pick<WriteRow, "signer">,
  why: keyof typeof WHY_NOTHING,
): SubmissionFailure => ({
  code: "chain_unavailable",
  detail: `${WHY_NOTHING[why]} ${signer === null ? "Nothing was charged; make it again." : SIGN_AGAIN}`,
  facts: {},
});

export const fateOf = ({ transactionHash, blockNumber, blockHash }: Receipt): Fate => ({
  state: "mined",
  hash: transactionHash,
  block: { number: Number(blockNumber), hash: blockHash },
});

/** By id of the write. A shared transaction that failed as a whole gives none: its writes wait for others. */
export async function outcomesOf(
  rpc: RpcClient,
  contract: Address,
  { transaction, writes }: Carrier,
  attempt: Pick<AttemptRow, "is_noop">,
  receipt: Receipt,
): Promise<ReadonlyMap<string, Outcome>> {
  if (attempt.is_noop) return abandonedOutcomes(writes);
  const isDone = BigInt(receipt.status) === 1n;
  const [only] = writes;
  if (only === undefined || (writes.length > 1 && !isDone)) return new Map();
  if (only.signer !== null) return new Map(await forwardOutcomes(rpc, contract, writes, receipt));
  const events = eventsOf(receipt, contract);
  if (writes.length > 1) return new Map(writes.map((write) => [write.id, outcomeAmong(write, events, receipt)]));
  if (isDone) return new Map([[only.id, { state: "done", result: resultOf(events), charged: true }]]);
  const gas = `0x${transaction.gas_limit.toString(16)}`;
  const to = targetOf(only.calldata ?? "0x", contract);
  const reason = await reasonOf(rpc, { from: receipt.from, to, data: only.calldata, gas }, receipt);
  const facts = { ...reason.facts, charged: true, transaction_hash: receipt.transactionHash };
  return new Map([[only.id, { state: "failed", error: { ...reason, facts }, charged: true }]]);
}

/** A no-op used the nonce. */
export const abandonedOutcomes = (writes: readonly WriteRow[]): ReadonlyMap<string, Outcome> =>
  new Map(
    writes.map((write) => [
      write.id,
      { state: "abandoned", error: cameToNothing(write, "abandoned"), charged: false } as const,
    ]),
  );

/** In a shared transaction, a failed call is not charged. */
function outcomeAmong(
  { account_id, place }: WriteRow,
  events: ReturnType<typeof eventsOf>,
  { transactionHash }: Receipt,
): Outcome {
  const reason = failedCalls(events).get(place);
  if (reason === undefined)
    return { state: "done", result: resultOf(eventsByAccount(events)(account_id)), charged: true };
  const named = revertError(reason);
  const { code, detail, facts } = named.code === "internal_error" ? unknownReason : named;
  return {
    state: "failed",
    error: { code, detail, facts: { ...facts, transaction_hash: transactionHash } },
    charged: false,
  };
}
