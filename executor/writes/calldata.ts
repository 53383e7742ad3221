/**
 * Encodes contract writes as calldata and decodes them again, so that the rules check the bytes to be signed, not the
 * request.
 */
import type { Interface, Result } from "ethers";
import { IAccountManager__factory } from "../../typechain-types";
import { KeywrightError } from "../../protocol/errors";
import type { SimpleWrite } from "../../protocol/executor";

const CONTRACT: Interface = IAccountManager__factory.createInterface();

/** A function with its arguments as the contract will decode them. */
export interface DecodedWrite {
  readonly functionName: string;
  readonly args: Result;
  readonly calldata: string;
}

/** Every function of the contract that changes state, by name. */
export function writeFunctions(): string[] {
  return CONTRACT.fragments.flatMap((fragment) =>
    "stateMutability" in fragment && "name" in fragment && fragment.stateMutability === "nonpayable"
      ? [String(fragment.name)]
      : [],
  );
}

/** @throws KeywrightError `invalid_value` when the arguments do not fit the function. */
export function encodeWrite({ functionName, args }: SimpleWrite): DecodedWrite {
  try {
    const calldata = CONTRACT.encodeFunctionData(functionName, args);
    return { functionName, args: CONTRACT.decodeFunctionData(functionName, calldata), calldata };
  } catch (cause) {
    throw new KeywrightError(
      "invalid_value",
      `The arguments do not fit ${functionName} of the contract.`,
      {},
      { cause },
    );
  }
}

export function encodeBatch(calls: readonly DecodedWrite[]): string {
  return CONTRACT.encodeFunctionData("multicall", [calls.map(({ calldata }) => calldata)]);
}

/** Calls that succeed or fail independently. The contract refuses a batch inside one. */
export const encodeTryMulticall = (calls: readonly string[]): string =>
  CONTRACT.encodeFunctionData("tryMulticall", [calls]);
