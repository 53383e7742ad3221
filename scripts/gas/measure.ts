import type { ContractTransactionResponse, TransactionResponse } from "ethers";

/** One row: a call, the same call's gas on the closest comparable public contract, and the means it counts in. */
export interface Row {
  name: string;
  gas: number;
  /** Gas of the same call on the compared contract; absent where it has none. */
  baseline?: number | undefined;
  /**
   * `plain` rows count in both means, `manyLists` rows (and the deployment) in the first only, `alone` rows in none.
   */
  group: "plain" | "manyLists" | "alone";
}

type Sent = ContractTransactionResponse | TransactionResponse;

/** Adds the row of one call after another, with the gas used according to the transaction's receipt. */
export const rowsInto =
  (rows: Row[], group: Row["group"]) =>
  async (name: string, call: Sent | Promise<Sent>, baseline?: number): Promise<void> => {
    const receipt = await (await call).wait();
    if (receipt?.status !== 1) throw new Error("A measured call failed.");
    rows.push({ name, gas: Number(receipt.gasUsed), baseline, group });
  };

/** Returns a value that must be present, or throws. */
export function must<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("A value that this measurement needs is missing.");
  return value;
}
