/**
 * Decodes ABI values in place: a general coder takes several times as long as the node needs for the response. Names on
 * chain are unchecked bytes: invalid UTF-8 decodes to replacement characters. A test compares this with the general
 * coder.
 */
import { getAddress, type ParamType } from "ethers";
import { MalformedAnswer, WORD_BYTES } from "../../../protocol/abi";

/** How values of one type are laid out. */
export interface Shape {
  /** Size in place in bytes; undefined for dynamic types, which are read through an offset. */
  readonly size: number | undefined;
  readonly read: (bytes: Buffer, at: number) => unknown;
}
export function shapeOf(type: ParamType): Shape {
  if (type.baseType === "array" && type.arrayLength === -1 && type.arrayChildren !== null)
    return arrayOf(shapeOf(type.arrayChildren));
  if (type.components !== null) return structOf(type.components);
  if (type.baseType === "string") return { size: undefined, read: textAt };
  if (type.baseType === "bytes")
    return { size: undefined, read: (bytes, at) => `0x${bytesAt(bytes, at).toString("hex")}` };
  if (type.baseType === "bool") return { size: WORD_BYTES, read: (bytes, at) => smallAt(bytes, at) !== 0 };
  if (type.baseType === "address")
    return { size: WORD_BYTES, read: (bytes, at) => getAddress(`0x${sliceOf(bytes, at + 12, 20).toString("hex")}`) };
  if (type.baseType.startsWith("uint")) return { size: WORD_BYTES, read: uintAt };
  throw new TypeError(`no view or event of the contract holds ${type.type}`);
}

function structOf(components: readonly ParamType[]): Shape {
  const names = components.map(({ name }) => name);
  const members = components.map(shapeOf);
  const size = members.reduce<number | undefined>(
    (total, member) => (total === undefined || member.size === undefined ? undefined : total + member.size),
    0,
  );
  const read = (bytes: Buffer, at: number): Record<string, unknown> => {
    const values = readAll(members, bytes, at);
    const struct: Record<string, unknown> = {};
    names.forEach((name, index) => (struct[name] = values[index]));
    return struct;
  };
  return { size, read };
}

function arrayOf(item: Shape): Shape {
  const read = (bytes: Buffer, at: number): unknown[] => {
    const count = lengthAt(bytes, at);
    // Each item takes at least a word: reject lengths beyond the payload before allocating.
    if (count > (bytes.length - at) / WORD_BYTES) throw new MalformedAnswer();
    return readAll(new Array<Shape>(count).fill(item), bytes, at + WORD_BYTES);
  };
  return { size: undefined, read };
}

/** Consecutive values from `base` on; offsets are relative to it, too. */
export function readAll(shapes: readonly Shape[], bytes: Buffer, base: number): unknown[] {
  const values: unknown[] = [];
  let at = base;
  for (const { size, read } of shapes) {
    values.push(read(bytes, size === undefined ? base + lengthAt(bytes, at) : at));
    at += size ?? WORD_BYTES;
  }
  return values;
}

function sliceOf(bytes: Buffer, at: number, length: number): Buffer {
  if (at + length > bytes.length) throw new MalformedAnswer();
  return bytes.subarray(at, at + length);
}

function uintAt(bytes: Buffer, at: number): bigint {
  return BigInt(smallAt(bytes, at) ?? `0x${sliceOf(bytes, at, WORD_BYTES).toString("hex")}`);
}

/** The value of a word if below 2^32, the common case; else undefined. */
function smallAt(bytes: Buffer, at: number): number | undefined {
  const low = at + WORD_BYTES - 4;
  if (low + 4 > bytes.length) throw new MalformedAnswer();
  for (let high = at; high < low; high++) if (bytes[high] !== 0) return undefined;
  return bytes.readUInt32BE(low);
}

/** An offset or a length; values beyond the payload are rejected. */
function lengthAt(bytes: Buffer, at: number): number {
  const value = smallAt(bytes, at);
  if (value === undefined || value > bytes.length) throw new MalformedAnswer();
  return value;
}

function bytesAt(bytes: Buffer, at: number): Buffer {
  const start = at + WORD_BYTES;
  const end = start + lengthAt(bytes, at);
  if (end > bytes.length) throw new MalformedAnswer();
  return bytes.subarray(start, end);
}

const textAt = (bytes: Buffer, at: number): string => bytesAt(bytes, at).toString("utf8");
