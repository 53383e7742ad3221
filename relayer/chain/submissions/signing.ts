/** Has the executor sign the transaction that a submission needs next. */
import type { ExecutorAnswer, TaggedCall } from "../../../protocol/executor";
import type { Fees } from "../payers/fees";
import { BATCH, type AttemptRow, type SubmissionRow, type Unit } from "./rows";
import type { ExecutorPort } from "../types";

export type TransactionKind = AttemptRow["does"];

/** Signs the unit's content, or a no-op at its nonce. Throws the executor's errors. */
export async function sign(
  executor: ExecutorPort,
  unit: Unit,
  does: TransactionKind,
  fees: Fees,
): Promise<Omit<AttemptRow, "created_at" | "submission_id">> {
  const { rawTransaction, hash } = await askFor(executor, unit, does, fees);
  return {
    hash,
    does,
    raw: rawTransaction,
    max_fee: fees.maxFeePerGas.toString(),
    priority_fee: fees.maxPriorityFeePerGas.toString(),
  };
}

function askFor(
  executor: ExecutorPort,
  { row, members }: Unit,
  does: TransactionKind,
  fees: Fees,
): Promise<ExecutorAnswer<"signAsPayer">> {
  const { payer, nonce, gas_limit, to_payer, amount_wei } = row;
  if (nonce === null) throw new TypeError(`submission ${row.id} has no nonce`);
  const offer = {
    maxFeePerGas: fees.maxFeePerGas.toString(),
    maxPriorityFeePerGas: fees.maxPriorityFeePerGas.toString(),
    nonce,
  };
  const context = row.request_id === null ? {} : { requestId: row.request_id };
  if (does === "nothing") return executor.call("signNoop", { ...offer, payer }, context);
  if (to_payer !== null && amount_wei !== null)
    return executor.call("signTopUp", { ...offer, toPayer: to_payer, amountWei: amount_wei }, context);
  const carried = row.kind === BATCH ? members : [row];
  if (carried.every(({ tag }) => tag === null)) {
    const forwards = carried.map(calldataOf);
    return executor.call("signForwards", { ...offer, payer, forwards, gasLimit: String(gas_limit) }, context);
  }
  return executor.call(
    "signAsPayer",
    { ...offer, payer, calls: carried.map(callOf), gasLimit: String(gas_limit) },
    context,
  );
}

function callOf(row: SubmissionRow): TaggedCall {
  if (row.tag === null) throw new TypeError(`submission ${row.id} has no tag`);
  return { calldata: calldataOf(row), tag: row.tag };
}

function calldataOf({ id, calldata }: SubmissionRow): string {
  if (calldata === null) throw new TypeError(`submission ${id} has nothing to sign`);
  return calldata;
}
