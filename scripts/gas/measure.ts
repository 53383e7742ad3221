import type { ContractTransactionResponse, TransactionResponse } from "ethers";

export type Measure = (call: Promise<ContractTransactionResponse | TransactionResponse>) => Promise<number>;

/** The gas used according to the transaction's receipt. */
export const measure: Measure = async (call) => {
  const receipt = await (await call).wait();
  if (receipt?.status !== 1) throw new Error("A measured call failed.");
  return Number(receipt.gasUsed);
};

/** Returns a value that must be present, or throws. */
export function must<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("A value that this measurement needs is missing.");
  return value;
}
