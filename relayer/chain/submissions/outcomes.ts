/** Derives the outcomes of writes from the receipt of the transaction that carried them. */
import { targetOf } from "../../../protocol/budgets";
import { decodeForward, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { nameOf, reasonOf, UNKNOWN_REASON } from "../abi/failures";
import { Executions, noncesCall } from "../abi/forwarder";
import type { DecodedLog } from "../abi/logs";
import { eventsByAccount, eventsOf, failedCalls, resultOf, type Receipt } from "../abi/receipts";
import type { RpcClient } from "../rpc/client";
import { quantityOf } from "../rpc/quantities";
import type { SubmissionFailure } from "../types";
import type { AttemptRow, Carrier, Outcome, WriteRow } from "./rows";

const MAKE_AGAIN = "Nothing was charged; make it again.";
/** A request is identified by its signature: sending it again returns this outcome, though it is valid on chain. */
const SIGN_AGAIN =
  "Nothing was charged. Until its deadline the request may still be sent by whoever has it; " +
  "sign another one for its nonce.";

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
  if (writes.length > 1 && !isDone) return new Map();
  const events = eventsOf(receipt, contract);
  const eventsOfAccount = eventsByAccount(events);
  const failed = failedCalls(events);
  const executions = new Executions(receipt);
  const outcomeOf = async (write: WriteRow): Promise<Outcome> => {
    const calldata = write.calldata ?? "0x";
    const reason = failed.get(write.place);
    if (write.signer !== null) {
      const request = decodeForward(calldata);
      const succeeded = executions.of({ signer: request.from, nonce: request.nonce });
      if (succeeded === true) return done(eventsOfAccount(write.account_id));
      const call = { from: request.from, to: contract, data: request.data, gas: quantityOf(BigInt(request.gas)) };
      // A call that failed in a shared transaction is not charged.
      if (succeeded === false) return failure(receipt, await reasonOf(rpc, call, receipt), false);
      return notExecuted(rpc, request, call, receipt);
    }
    if (reason !== undefined) return failure(receipt, nameOf(reason) ?? UNKNOWN_REASON, false);
    if (isDone) return done(eventsOfAccount(write.account_id));
    const to = targetOf(calldata, contract);
    const call = { from: receipt.from, to, data: calldata, gas: quantityOf(transaction.gas_limit) };
    return failure(receipt, await reasonOf(rpc, call, receipt), true);
  };
  return new Map(await Promise.all(writes.map(async (write) => [write.id, await outcomeOf(write)] as const)));
}

/** A no-op used the nonce. */
export const abandonedOutcomes = (writes: readonly WriteRow[]): ReadonlyMap<string, Outcome> =>
  new Map(writes.map(({ id, signer }) => [id, { state: "abandoned", error: cancelled(signer), charged: false }]));

const cancelled = (signer: string | null): SubmissionFailure => ({
  code: "chain_unavailable",
  detail: `The write was cancelled before it was mined. ${signer === null ? MAKE_AGAIN : SIGN_AGAIN}`,
  facts: {},
});

const done = (events: readonly DecodedLog[]): Outcome => ({ state: "done", result: resultOf(events), charged: true });

function failure({ transactionHash }: Receipt, error: SubmissionFailure, charged: boolean): Outcome {
  const facts = { ...error.facts, ...(charged ? { charged } : {}), transaction_hash: transactionHash };
  return { state: "failed", error: { ...error, facts }, charged };
}

/**
 * Another transaction took the nonce, the deadline passed before the block, or the call was alone in its transaction
 * and reverted with it.
 */
async function notExecuted(
  rpc: RpcClient,
  { from, nonce, deadline }: SignedForwardRequest,
  call: object,
  receipt: Receipt,
): Promise<Outcome> {
  const count = { to: receipt.to, data: noncesCall(from) };
  const countedNow = (): Promise<unknown> =>
    rpc
      .callAt(Number(receipt.blockNumber), (block) => [{ method: "eth_call", params: [count, block] }])
      .then(({ values }) => values[0]);
  const [counted, mined] = await Promise.all([
    // Most nodes lose old states soon; a nonce never becomes lower.
    rpc.call<unknown>("eth_call", [count, receipt.blockNumber]).catch(countedNow),
    rpc.call<{ timestamp: string } | null>("eth_getBlockByNumber", [receipt.blockNumber, false]),
  ]);
  const next = BigInt(counted as string);
  if (next > BigInt(nonce)) {
    const detail =
      `Another transaction used nonce ${nonce} before this request was mined; nothing was charged. ` +
      `The signer's next is ${next}.`;
    return failure(receipt, { code: "forward_nonce_used", detail, facts: { next_nonce: String(next) } }, false);
  }
  // The owner chose the deadline, so the gas spent on the request is charged.
  const isTooLate = mined !== null && BigInt(mined.timestamp) > BigInt(deadline);
  const detail = `The request was mined after its deadline ${deadline}, and the forwarder left it out.`;
  if (isTooLate) return failure(receipt, { code: "request_expired", detail, facts: {} }, true);
  return failure(receipt, await reasonOf(rpc, call, receipt), true);
}
