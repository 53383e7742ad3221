/** The contract's words, both ways: calldata out; results, events and errors in. */
import type { Interface } from "ethers";
import { IAccountManager__factory } from "../../../typechain-types";
import type { ContractWrite } from "../../../protocol/executor";

/** By any name: writes come as data. */
export const CONTRACT: Interface = IAccountManager__factory.createInterface();

export function encodeWrite(write: ContractWrite): string {
  if (!("calls" in write)) return CONTRACT.encodeFunctionData(write.functionName, write.args);
  return CONTRACT.encodeFunctionData("multicall", [write.calls.map((call) => CONTRACT.encodeFunctionData(call.functionName, call.args))]);
}

/** Calldata of one transaction for these calls: one as it is, several each for itself. */
export function encodeCalls(calls: readonly string[]): string {
  const [only] = calls;
  return calls.length === 1 && only !== undefined ? only : CONTRACT.encodeFunctionData("tryMulticall", [calls]);
}
