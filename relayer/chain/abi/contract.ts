/** The contract's words, both ways: calldata out; results, events and errors in. */
import type { Interface } from "ethers";
import { IAccountManager__factory } from "../../../typechain-types";
import type { ContractWrite } from "../../../protocol/executor";

/** By any name: writes come as data. */
export const CONTRACT: Interface = IAccountManager__factory.createInterface();

/** What is no UTF-8 comes out as replacement characters. */
export const textOf = (bytes: string): string => Buffer.from(bytes.slice(2), "hex").toString("utf8");

export function encodeWrite(write: ContractWrite): string {
  if (!("calls" in write)) return CONTRACT.encodeFunctionData(write.functionName, write.args);
  return CONTRACT.encodeFunctionData("multicall", [write.calls.map((call) => CONTRACT.encodeFunctionData(call.functionName, call.args))]);
}
