/**
 * Calldata of `tryMulticall(bytes[])`. Written out because ethers takes two milliseconds for a batch, most of them for
 * turning bytes into text and back.
 */
import { AccountManager__factory } from "../../typechain-types";

const SELECTOR = Buffer.from(
  AccountManager__factory.createInterface().getFunction("tryMulticall").selector.slice(2),
  "hex",
);
const WORD = 32;

/** Calls that succeed or fail independently; the contract refuses a batch inside one. Source: Solidity's ABI. */
export function encodeTryMulticall(calls: readonly Uint8Array[]): Buffer {
  const tails = calls.map((call) => Buffer.concat([word(call.length), call, Buffer.alloc(-call.length & (WORD - 1))]));
  let offset = calls.length * WORD;
  const heads = tails.map((tail) => {
    const head = word(offset);
    offset += tail.length;
    return head;
  });
  return Buffer.concat([SELECTOR, word(WORD), word(calls.length), ...heads, ...tails]);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(WORD);
  bytes.writeUInt32BE(value, WORD - 4);
  return bytes;
}
