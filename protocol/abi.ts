/**
 * Solidity's ABI by hand, for the few calls of hot paths: a general coder takes longer than all other preparation of a
 * run, and milliseconds for a batch of writes. Tests compare each use with the general coder.
 */
import type { Address } from "./ids";

/** The contract cannot have given this answer. */
export class MalformedAnswer extends Error {
  override readonly name = "MalformedAnswer";
  constructor() {
    super("the answer is not that of an AccountManager");
  }
}

export const WORD_BYTES = 32;
const WORD_DIGITS = 2 * WORD_BYTES;
export const ZERO_WORD = "0".repeat(WORD_DIGITS);

/** A small number as a word of return data, without 0x. */
export const numberWord = (value: number): string => value.toString(16).padStart(WORD_DIGITS, "0");

/** An address as a word of calldata, without 0x. */
export const addressWord = (address: Address): string => address.slice(2).toLowerCase().padStart(WORD_DIGITS, "0");

/** Exactly `count` words of return data, in lower case. @throws MalformedAnswer. */
export function wordsOf(data: unknown, count: number): string[] {
  if (typeof data !== "string" || data.length !== 2 + count * WORD_DIGITS || !/^0x[0-9a-fA-F]+$/.test(data))
    throw new MalformedAnswer();
  return Array.from({ length: count }, (_, index) =>
    data.slice(2 + index * WORD_DIGITS, 2 + (index + 1) * WORD_DIGITS).toLowerCase(),
  );
}

/** Decodes a word that is 0 or 1. @throws MalformedAnswer. */
export function flagOf(word: string | undefined): boolean {
  const value = BigInt(`0x${word}`);
  if (value > 1n) throw new MalformedAnswer();
  return value === 1n;
}

/** The one argument of `multicall(bytes[])` and `tryMulticall(bytes[])`: offset, length, heads, padded elements. */
export function encodeBytesArray(elements: readonly Uint8Array[]): Buffer {
  const tails = elements.map((element) =>
    Buffer.concat([sizeWord(element.length), element, Buffer.alloc(-element.length & (WORD_BYTES - 1))]),
  );
  let offset = elements.length * WORD_BYTES;
  const heads = tails.map((tail) => {
    const head = sizeWord(offset);
    offset += tail.length;
    return head;
  });
  return Buffer.concat([sizeWord(WORD_BYTES), sizeWord(elements.length), ...heads, ...tails]);
}

function sizeWord(value: number): Buffer {
  const bytes = Buffer.alloc(WORD_BYTES);
  bytes.writeUInt32BE(value, WORD_BYTES - 4);
  return bytes;
}
