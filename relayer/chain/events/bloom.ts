/** The 2,048-bit bloom filter in a block's header over addresses and topics of its logs: no false negatives. */
import { keccak256 } from "ethers";

const BYTES = 256;

/** Positions of a value's three bits: byte from the left, and bit within it. */
type Places = readonly (readonly [number, number])[];

function placesOf(value: string): Places {
  const hash = Buffer.from(keccak256(value).slice(2), "hex");
  return [0, 2, 4].map((at): [number, number] => {
    const bit = hash.readUInt16BE(at) & 0x7ff;
    return [BYTES - 1 - (bit >> 3), bit & 7];
  });
}

/** Tests blooms for one contract: its address, and any of these topics; without topics, its address alone. */
export class BloomQuestion {
  /** In lower case. */
  readonly address: string;
  readonly #address: Places;
  readonly #topics: readonly Places[];

  constructor(address: string, topics: readonly string[]) {
    this.address = address.toLowerCase();
    this.#address = placesOf(address);
    this.#topics = topics.map(placesOf);
  }

  /** `no`: there is no such log. `yes`: there most likely is one. `unknown`: the bloom is missing or too full. */
  ask(bloom: string | undefined): "no" | "yes" | "unknown" {
    const bits = Buffer.from((bloom ?? "0x").slice(2), "hex");
    if (bits.length !== BYTES) return "unknown";
    const has = (places: Places): boolean => places.every(([byte, bit]) => (((bits[byte] ?? 0) >> bit) & 1) === 1);
    if (!has(this.#address) || (this.#topics.length > 0 && !this.#topics.some(has))) return "no";
    return isMoreThanHalfFull(bits) ? "unknown" : "yes";
  }
}

function isMoreThanHalfFull(bits: Buffer): boolean {
  let set = 0;
  for (const byte of bits) for (let rest = byte; rest > 0; rest &= rest - 1) set += 1;
  return set > BYTES * 4;
}

/** Bitwise OR of several blooms, as hex. */
export function unionOf(blooms: readonly string[]): string {
  const union = Buffer.alloc(BYTES);
  for (const bloom of blooms)
    Buffer.from(bloom.slice(2), "hex").forEach((byte, index) => (union[index] = (union[index] ?? 0) | byte));
  return `0x${union.toString("hex")}`;
}
