/** Has the executor sign the attempt that a transaction needs next. */
import type { ExecutorAnswer, TaggedCall } from "../../../protocol/executor";
import type { Fees } from "../payers/fees";
import type { AttemptRow, Carrier, WriteRow } from "./rows";
import type { ExecutorPort } from "../types";

/** Signs the transaction's content, or a no-op with its nonce. Throws the executor's errors. */
export async function sign(
  executor: ExecutorPort,
  { transaction, writes }: Carrier,
  isNoop: boolean,
  fees: Fees,
): Promise<Omit<AttemptRow, "created_at" | "transaction_id">> {
  const { id, payer, nonce, gas_limit, to_payer: toPayer, amount_wei: amountWei, request_id } = transaction;
  if (nonce === null) throw new TypeError(`transaction ${id} has no nonce`);
  const [max_fee, priority_fee] = [String(fees.maxFeePerGas), String(fees.maxPriorityFeePerGas)];
  const offer = { maxFeePerGas: max_fee, maxPriorityFeePerGas: priority_fee, nonce };
  const context = request_id === null ? {} : { requestId: request_id };
  const ask = (): Promise<ExecutorAnswer<"signAsPayer">> => {
    if (isNoop) return executor.call("signNoop", { ...offer, payer }, context);
    if (toPayer !== null && amountWei !== null)
      return executor.call("signTopUp", { ...offer, toPayer, amountWei }, context);
    const call = { ...offer, payer, gasLimit: String(gas_limit) };
    if (writes.every(({ tag }) => tag === null))
      return executor.call("signForwards", { ...call, forwards: writes.map(calldataOf) }, context);
    return executor.call("signAsPayer", { ...call, calls: writes.map(callOf) }, context);
  };
  const { rawTransaction: raw, hash } = await ask();
  return { hash, is_noop: isNoop, raw, max_fee, priority_fee };
}

/** Writes and forward requests, which have no tag, never share a transaction. */
const callOf = (write: WriteRow): TaggedCall => ({ calldata: calldataOf(write), tag: write.tag ?? "" });

function calldataOf({ id, calldata }: WriteRow): string {
  if (calldata === null) throw new TypeError(`write ${id} has nothing to sign`);
  return calldata;
}
