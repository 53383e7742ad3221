/** The contract's words, both ways: calldata out; results, events and errors in. */
import { Interface } from "ethers";
import { IAccountManager__factory } from "../../../typechain-types";
import type { ContractWrite } from "../../../protocol/executor";

const BATCHES = [
  "function multicall(bytes[] data) returns (bytes[] results)",
  "function tryMulticall(bytes[] data) returns (bool[] succeeded)",
  "event CallFailed(uint256 indexed index, bytes reason)",
];
/** All of the contract. */
export const CONTRACT = new Interface([...IAccountManager__factory.abi, ...BATCHES]);

export function encodeWrite(write: ContractWrite): string {
  if (!("calls" in write)) return CONTRACT.encodeFunctionData(write.functionName, write.args);
  return CONTRACT.encodeFunctionData("multicall", [write.calls.map((call) => CONTRACT.encodeFunctionData(call.functionName, call.args))]);
}

/** Calldata of one transaction for these calls: one as it is, several each for itself. */
export function encodeCalls(calls: readonly string[]): string {
  const [only] = calls;
  return calls.length === 1 && only !== undefined ? only : CONTRACT.encodeFunctionData("tryMulticall", [calls]);
}
