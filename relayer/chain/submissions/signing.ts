/** Has the executor sign the attempt that a transaction needs next. */
import type { ExecutorAnswer, TaggedCall } from "../../../protocol/executor";
import type { Fees } from "../payers/fees";
import type { AttemptRow, Carrier, WriteRow } from "./rows";
import type { ExecutorPort } from "../types";

/** Signs the transaction's content, or a no-op with its nonce. Throws the executor's errors. */
export async function sign(
  executor: ExecutorPort,
  carrier: Carrier,
  isNoop: boolean,
  fees: Fees,
): Promise<Omit<AttemptRow, "created_at" | "transaction_id">> {
  const offer = {
    maxFeePerGas: fees.maxFeePerGas.toString(),
    maxPriorityFeePerGas: fees.maxPriorityFeePerGas.toString(),
  };
  const { rawTransaction: raw, hash } = await askFor(executor, carrier, isNoop, offer);
  return { hash, is_noop: isNoop, raw, max_fee: offer.maxFeePerGas, priority_fee: offer.maxPriorityFeePerGas };
}

function askFor(
  executor: ExecutorPort,
  { transaction, writes }: Carrier,
  isNoop: boolean,
  fees: { readonly maxFeePerGas: string; readonly maxPriorityFeePerGas: string },
): Promise<ExecutorAnswer<"signAsPayer">> {
  const { id, payer, nonce, gas_limit, to_payer, amount_wei } = transaction;
  if (nonce === null) throw new TypeError(`transaction ${id} has no nonce`);
  const offer = { ...fees, nonce };
  const context = transaction.request_id === null ? {} : { requestId: transaction.request_id };
  if (isNoop) return executor.call("signNoop", { ...offer, payer }, context);
  if (to_payer !== null && amount_wei !== null)
    return executor.call("signTopUp", { ...offer, toPayer: to_payer, amountWei: amount_wei }, context);
  const gasLimit = String(gas_limit);
  if (writes.every(({ tag }) => tag === null))
    return executor.call("signForwards", { ...offer, payer, forwards: writes.map(calldataOf), gasLimit }, context);
  return executor.call("signAsPayer", { ...offer, payer, calls: writes.map(callOf), gasLimit }, context);
}

function callOf(write: WriteRow): TaggedCall {
  if (write.tag === null) throw new TypeError(`write ${write.id} has no tag`);
  return { calldata: calldataOf(write), tag: write.tag };
}

function calldataOf({ id, calldata }: WriteRow): string {
  if (calldata === null) throw new TypeError(`write ${id} has nothing to sign`);
  return calldata;
}
