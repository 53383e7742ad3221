/** Asks the executor for the signature that a submission needs next. */
import type { ExecutorAnswer } from "../../../protocol/executor";
import type { Fees } from "../payers/fees";
import type { AttemptRow, SubmissionRow } from "./records";
import type { ExecutorPort } from "../types";

export type TransactionKind = AttemptRow["does"];

/** Signs the row's deed, or nothing at its nonce. Throws what the executor throws. */
export async function sign(
  executor: ExecutorPort,
  row: SubmissionRow,
  does: TransactionKind,
  fees: Fees,
): Promise<Omit<AttemptRow, "created_at" | "submission_id">> {
  const { rawTransaction, hash } = await askFor(executor, row, does, fees);
  return { hash, does, raw: rawTransaction, max_fee: fees.maxFeePerGas.toString(), priority_fee: fees.maxPriorityFeePerGas.toString() };
}

function askFor(executor: ExecutorPort, row: SubmissionRow, does: TransactionKind, fees: Fees): Promise<ExecutorAnswer<"signAsPayer">> {
  const { payer, nonce, calldata, tag, gas_limit, to_payer, amount_wei } = row;
  if (nonce === null) throw new TypeError(`submission ${row.id} has no nonce`);
  const offer = { maxFeePerGas: fees.maxFeePerGas.toString(), maxPriorityFeePerGas: fees.maxPriorityFeePerGas.toString(), nonce };
  const context = row.request_id === null ? {} : { requestId: row.request_id };
  if (does === "nothing") return executor.call("signNoop", { ...offer, payer }, context);
  if (to_payer !== null && amount_wei !== null) return executor.call("signTopUp", { ...offer, toPayer: to_payer, amountWei: amount_wei }, context);
  if (calldata === null) throw new TypeError(`submission ${row.id} has nothing to sign`);
  if (tag === null) return executor.call("signForwards", { ...offer, payer, forwards: [calldata], gasLimit: String(gas_limit) }, context);
  return executor.call("signAsPayer", { ...offer, payer, calldata, tag, gasLimit: String(gas_limit) }, context);
}
