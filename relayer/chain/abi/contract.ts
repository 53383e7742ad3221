/** The contract's ABI: encodes calldata; decodes results, events and errors. */
import type { Interface } from "ethers";
import { AccountManager__factory } from "../../../typechain-types";
import type { ContractWrite } from "../../../protocol/executor";

/** Untyped by function name: writes arrive as data. */
export const CONTRACT: Interface = AccountManager__factory.createInterface();

export function encodeWrite(write: ContractWrite): string {
  if (!("calls" in write)) return CONTRACT.encodeFunctionData(write.functionName, write.args);
  return CONTRACT.encodeFunctionData("multicall", [
    write.calls.map((call) => CONTRACT.encodeFunctionData(call.functionName, call.args)),
  ]);
}
