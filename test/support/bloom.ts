/** Blooms of blocks, filled by an independent implementation of the yellow paper. */
import { keccak256 } from "ethers";

export function bloomOf(values: readonly string[]): string {
  let bits = 0n;
  for (const value of values) {
    const hash = keccak256(value).slice(2);
    for (const at of [0, 4, 8]) bits |= 1n << BigInt(parseInt(hash.slice(at, at + 4), 16) % 2_048);
  }
  return `0x${bits.toString(16).padStart(512, "0")}`;
}
