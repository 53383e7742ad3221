/** The contract's ABI: encodes calldata; decodes results, events and errors. */
import { AbiCoder, type Interface, type ParamType } from "ethers";
import { AccountManager__factory } from "../../../typechain-types";
import { BUDGETS } from "../../../protocol/budgets";
import type { ContractWrite } from "../../../protocol/executor";

/** Untyped by function name: writes arrive as data. */
export const CONTRACT: Interface = AccountManager__factory.createInterface();

/** A lease of a budget is the one write of another contract; it has a transaction of its own. */
export const isLease = (write: ContractWrite): boolean => write.functionName === "lease";

export function encodeWrite(write: ContractWrite): string {
  if (isLease(write) && "args" in write) return BUDGETS.encodeFunctionData("lease", write.args as never);
  if (!("calls" in write)) return encodeCall(write.functionName, write.args);
  return encodeCall("multicall", [write.calls.map((call) => encodeCall(call.functionName, call.args))]);
}

interface KnownFunction {
  readonly selector: string;
  readonly inputs: readonly ParamType[];
}

const functions = new Map<string, KnownFunction>();

/** As `Interface.encodeFunctionData`, which looks for the function and hashes its signature for every call. */
function encodeCall(name: string, args: readonly unknown[]): string {
  const { selector, inputs } = functions.get(name) ?? functionOf(name);
  return selector + AbiCoder.defaultAbiCoder().encode(inputs, args).slice(2);
}

function functionOf(name: string): KnownFunction {
  const fragment = CONTRACT.getFunction(name);
  if (fragment === null) throw new TypeError(`the contract has no function ${name}`);
  const known = { selector: fragment.selector, inputs: fragment.inputs };
  functions.set(name, known);
  return known;
}
