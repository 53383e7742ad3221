/** From a receipt to the outcome of a submission. */
import { ERRORS, type KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import type { Outcome, SubmissionRow } from "./records";
import { resultOf, type Receipt } from "../abi/receipts";
import { revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import { RpcError } from "../../../protocol/rpc/errors";
import type { TransactionKind } from "./signing";
import type { SubmissionFailure } from "../types";

export const NONCE_LOST: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The write was overtaken by a transaction this service did not send and did not land. Nothing was charged; make it again.",
  facts: {},
};

const GIVEN_UP: SubmissionFailure = {
  code: "chain_unavailable",
  detail: "The write was given up before it landed. Nothing was charged; make it again.",
  facts: {},
};

export async function outcomeOf(rpc: RpcClient, contract: Address, row: SubmissionRow, does: TransactionKind, receipt: Receipt): Promise<Outcome> {
  const where = { transactionHash: receipt.transactionHash, block: { number: Number(receipt.blockNumber), hash: receipt.blockHash } };
  if (does === "nothing")
    return row.kind === "filler" ? { ...where, state: "mined", result: {}, charged: true } : { ...where, state: "expired", error: GIVEN_UP, charged: false };
  if (BigInt(receipt.status) === 1n) return { ...where, state: "mined", result: resultOf(receipt, contract), charged: true };
  return { ...where, state: "failed", error: await reasonOf(rpc, contract, row, receipt), charged: true };
}

/** Why it reverted: the same call after its block, where what stood in its way still stands, else before it. */
async function reasonOf(rpc: RpcClient, contract: Address, row: SubmissionRow, receipt: Receipt): Promise<SubmissionFailure> {
  const facts = { charged: true, transaction_hash: receipt.transactionHash };
  const call = { from: receipt.from, to: contract, data: row.calldata, gas: `0x${Number(row.gas_limit ?? 0).toString(16)}` };
  for (const block of [Number(receipt.blockNumber), Number(receipt.blockNumber) - 1]) {
    const error = await revertOf(rpc, call, block);
    if (error !== undefined) return { code: error.code, detail: error.detail, facts: { ...error.facts, ...facts } };
  }
  return { code: "write_reverted", detail: `${ERRORS.write_reverted.title}; the node does not say why.`, facts };
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
