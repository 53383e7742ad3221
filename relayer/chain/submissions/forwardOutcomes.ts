/**
 * Derives the outcome of each forward request from the transaction's receipt. The forwarder skips requests that have
 * become invalid and reports for the others whether their calls succeeded, but not why one failed: the reason is
 * queried from the chain.
 */
import { decodeForward, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { Executions, noncesCall } from "../abi/forwarder";
import { eventsByAccount, eventsOf, resultOf, type Receipt } from "../abi/receipts";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";
import type { Outcome, SubmissionRow } from "./rows";
import { reasonOf } from "./revertReason";

type Where = Pick<Outcome, "transactionHash" | "block">;

/** `contract`: the account contract. Requests that share a transaction belong to different accounts. */
export async function forwardOutcomes(
  rpc: RpcClient,
  contract: Address,
  rows: readonly SubmissionRow[],
  receipt: Receipt,
  where: Where,
): Promise<readonly [string, Outcome][]> {
  const executions = new Executions(receipt);
  const eventsOfAccount = eventsByAccount(eventsOf(receipt, contract));
  return Promise.all(
    rows.map(async (row): Promise<[string, Outcome]> => {
      const request = decodeForward(row.calldata ?? "0x");
      const succeeded = executions.of({ signer: request.from, nonce: request.nonce });
      if (succeeded === true) {
        return [row.id, { ...where, state: "mined", result: resultOf(eventsOfAccount(row.account_id)), charged: true }];
      }
      const failed =
        succeeded === false
          ? await failedCall(rpc, contract, request, receipt)
          : await notExecuted(rpc, contract, request, receipt);
      const facts = {
        ...failed.error.facts,
        ...(failed.charged ? { charged: true } : {}),
        transaction_hash: receipt.transactionHash,
      };
      return [row.id, { ...where, state: "failed", error: { ...failed.error, facts }, charged: failed.charged }];
    }),
  );
}

type Failed = Pick<Outcome, "charged"> & { readonly error: SubmissionFailure };

/** A call that failed in a shared transaction is not charged. */
async function failedCall(
  rpc: RpcClient,
  contract: Address,
  request: SignedForwardRequest,
  receipt: Receipt,
): Promise<Failed> {
  return { error: await reasonOf(rpc, callOf(contract, request), receipt), charged: false };
}

/**
 * Another transaction took the nonce, the deadline passed before the block, or the call was alone in its transaction
 * and reverted with it.
 */
async function notExecuted(
  rpc: RpcClient,
  contract: Address,
  request: SignedForwardRequest,
  receipt: Receipt,
): Promise<Failed> {
  const [next, mined] = await Promise.all([
    rpc.call<string>("eth_call", [{ to: receipt.to, data: noncesCall(request.from) }, receipt.blockNumber]),
    rpc.call<{ timestamp: string } | null>("eth_getBlockByNumber", [receipt.blockNumber, false]),
  ]);
  if (BigInt(next) > BigInt(request.nonce)) return { error: nonceTaken(request, BigInt(next)), charged: false };
  // The owner chose the deadline, so the gas spent on the request is charged.
  if (mined !== null && BigInt(mined.timestamp) > BigInt(request.deadline))
    return { error: tooLate(request), charged: true };
  return { error: await reasonOf(rpc, callOf(contract, request), receipt), charged: true };
}

const callOf = (
  contract: Address,
  { from, data, gas }: SignedForwardRequest,
): { from: string; to: string; data: string; gas: string } => ({
  from,
  to: contract,
  data,
  gas: `0x${BigInt(gas).toString(16)}`,
});

const nonceTaken = ({ nonce }: SignedForwardRequest, next: bigint): SubmissionFailure => ({
  code: "forward_nonce_used",
  detail:
    `Another transaction used nonce ${nonce} before this request was mined; nothing was charged. ` +
    `The signer's next is ${next}.`,
  facts: { next_nonce: String(next) },
});

const tooLate = ({ deadline }: SignedForwardRequest): SubmissionFailure => ({
  code: "request_expired",
  detail: `The request was mined after its deadline ${deadline}, and the forwarder left it out.`,
  facts: {},
});
