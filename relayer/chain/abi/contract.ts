/** The contract's ABI: encodes calldata; decodes results, events and errors. */
import type { Interface } from "ethers";
import { AccountManager__factory } from "../../../typechain-types";
import { BUDGETS } from "../../../protocol/budgets";
import type { ContractWrite } from "../../../protocol/executor";

/** Untyped by function name: writes arrive as data. */
export const CONTRACT: Interface = AccountManager__factory.createInterface();

/** A lease of a budget is the one write of another contract; it has a transaction of its own. */
export const isLease = (write: ContractWrite): boolean => write.functionName === "lease";

export function encodeWrite(write: ContractWrite): string {
  if (isLease(write) && "args" in write) return BUDGETS.encodeFunctionData("lease", write.args as never);
  if (!("calls" in write)) return CONTRACT.encodeFunctionData(write.functionName, write.args);
  return CONTRACT.encodeFunctionData("multicall", [
    write.calls.map((call) => CONTRACT.encodeFunctionData(call.functionName, call.args)),
  ]);
}
