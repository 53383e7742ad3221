/** Encodes contract writes as calldata. The rules read its words, so they check the bytes to be signed. */
import { getAddress, type Interface } from "ethers";
import { AccountManager__factory } from "../../typechain-types";
import { encodeBytesArray } from "../../protocol/abi";
import { KeywrightError } from "../../protocol/errors";
import type { SimpleWrite } from "../../protocol/executor";
import type { Address, Hash32 } from "../../protocol/ids";

const CONTRACT: Interface = AccountManager__factory.createInterface();

/** A function with the calldata that the contract will decode. */
export interface EncodedWrite {
  readonly functionName: string;
  readonly calldata: string;
}

const SELECTOR_DIGITS = 8;
const WORD_DIGITS = 64;
const ADDRESS_PADDING = `0x${"0".repeat(24)}`;

/** An argument of a static type, by its index: such arguments are words at fixed places behind the selector. */
export function wordOf({ calldata }: EncodedWrite, index: number): Hash32 {
  const start = 2 + SELECTOR_DIGITS + index * WORD_DIGITS;
  const word = calldata.slice(start, start + WORD_DIGITS);
  if (word.length !== WORD_DIGITS) throw new RangeError(`the calldata has no argument ${index}`);
  return `0x${word}` as Hash32;
}

/** An argument of type `address`. */
export function addressIn(write: EncodedWrite, index: number): Address {
  const word = wordOf(write, index);
  if (!word.startsWith(ADDRESS_PADDING)) throw new RangeError(`argument ${index} is no address`);
  return getAddress(`0x${word.slice(ADDRESS_PADDING.length)}`) as Address;
}

/** An argument of type `bool`. */
export const flagIn = (write: EncodedWrite, index: number): boolean => BigInt(wordOf(write, index)) === 1n;

/** Every function of the contract that changes state, by name. */
export function writeFunctions(): string[] {
  return CONTRACT.fragments.flatMap((fragment) =>
    "stateMutability" in fragment && "name" in fragment && fragment.stateMutability === "nonpayable"
      ? [String(fragment.name)]
      : [],
  );
}

/** @throws KeywrightError `invalid_value` when the arguments do not fit the function. */
export function encodeWrite({ functionName, args }: SimpleWrite): EncodedWrite {
  try {
    return { functionName, calldata: CONTRACT.encodeFunctionData(functionName, args) };
  } catch (cause) {
    throw new KeywrightError("invalid_value", `The arguments do not fit ${functionName} of the contract.`, undefined, {
      cause,
    });
  }
}

const TRY_MULTICALL = Buffer.from(
  AccountManager__factory.createInterface().getFunction("tryMulticall").selector.slice(2),
  "hex",
);

/** `tryMulticall`: calls that succeed or fail independently; the contract refuses a batch inside one. */
export const encodeTryMulticall = (calls: readonly Uint8Array[]): Buffer =>
  Buffer.concat([TRY_MULTICALL, encodeBytesArray(calls)]);

export function encodeBatch(calls: readonly EncodedWrite[]): string {
  return CONTRACT.encodeFunctionData("multicall", [calls.map(({ calldata }) => calldata)]);
}
