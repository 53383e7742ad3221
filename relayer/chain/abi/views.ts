/**
 * What is asked of a view and what it returned, by the types of its ABI. A general coder takes several times what the node took for the answer; here each value
 * is read where it stands. Names on chain are bytes that nobody checked: what is no UTF-8 comes out as replacement characters. A test holds this against the
 * general coder.
 */
import { getAddress, type ParamType } from "ethers";
import { NotTheContract } from "../../../protocol/decision";
import { CONTRACT } from "./contract";

const WORD = 32;

export type ViewArgument = bigint | number | string;

/** Calldata of a view; all take numbers, hashes and addresses only. */
export function encodeView(name: string, args: readonly ViewArgument[]): string {
  return (
    viewOf(name).selector +
    args
      .map((value) =>
        BigInt(value)
          .toString(16)
          .padStart(2 * WORD, "0"),
      )
      .join("")
  );
}

/** The return values in order; a struct as an object of its members. @throws NotTheContract for what no such view can have returned. */
export function decodeResult(name: string, data: unknown): readonly unknown[] {
  const { outputs } = viewOf(name);
  if (typeof data !== "string" || !data.startsWith("0x")) throw new NotTheContract();
  const bytes = Buffer.from(data.slice(2), "hex");
  // What is no hex ends the bytes early.
  if (2 * bytes.length !== data.length - 2) throw new NotTheContract();
  return readAll(outputs, bytes, 0);
}

/** How values of one type stand in the bytes. */
interface Shape {
  /** Bytes it takes in place; undefined when that depends on the value, which then stands behind an offset. */
  readonly size: number | undefined;
  readonly read: (bytes: Buffer, at: number) => unknown;
}
interface View {
  readonly selector: string;
  readonly outputs: readonly Shape[];
}

const views = new Map<string, View>();

function viewOf(name: string): View {
  const known = views.get(name);
  if (known !== undefined) return known;
  const fragment = CONTRACT.getFunction(name);
  if (fragment === null) throw new TypeError(`the contract has no function ${name}`);
  const view = { selector: fragment.selector, outputs: fragment.outputs.map(shapeOf) };
  views.set(name, view);
  return view;
}

function shapeOf(type: ParamType): Shape {
  if (type.baseType === "array" && type.arrayLength === -1 && type.arrayChildren !== null) return arrayOf(shapeOf(type.arrayChildren));
  if (type.components !== null) return structOf(type.components);
  if (type.baseType === "string") return { size: undefined, read: textAt };
  if (type.baseType === "bool") return { size: WORD, read: (bytes, at) => smallAt(bytes, at) !== 0 };
  if (type.baseType === "address") return { size: WORD, read: (bytes, at) => getAddress(`0x${sliceOf(bytes, at + 12, 20).toString("hex")}`) };
  if (type.baseType.startsWith("uint")) return { size: WORD, read: uintAt };
  throw new TypeError(`no view of the contract returns ${type.type}`);
}

function structOf(components: readonly ParamType[]): Shape {
  const names = components.map(({ name }) => name);
  const members = components.map(shapeOf);
  const size = members.reduce<number | undefined>((total, member) => (total === undefined || member.size === undefined ? undefined : total + member.size), 0);
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
    // Each item takes a word at least: a length that the bytes cannot hold is nothing to make room for.
    if (count > (bytes.length - at) / WORD) throw new NotTheContract();
    return readAll(new Array<Shape>(count).fill(item), bytes, at + WORD);
  };
  return { size: undefined, read };
}

/** Values side by side from `base` on; offsets count from there, too. */
function readAll(shapes: readonly Shape[], bytes: Buffer, base: number): unknown[] {
  const values: unknown[] = [];
  let at = base;
  for (const { size, read } of shapes) {
    values.push(read(bytes, size === undefined ? base + lengthAt(bytes, at) : at));
    at += size ?? WORD;
  }
  return values;
}

function sliceOf(bytes: Buffer, at: number, length: number): Buffer {
  if (at + length > bytes.length) throw new NotTheContract();
  return bytes.subarray(at, at + length);
}

function uintAt(bytes: Buffer, at: number): bigint {
  return BigInt(smallAt(bytes, at) ?? `0x${sliceOf(bytes, at, WORD).toString("hex")}`);
}

/** The value of a word below 2^32, which most are; undefined for others. */
function smallAt(bytes: Buffer, at: number): number | undefined {
  const low = at + WORD - 4;
  if (low + 4 > bytes.length) throw new NotTheContract();
  for (let high = at; high < low; high++) if (bytes[high] !== 0) return undefined;
  return bytes.readUInt32BE(low);
}

/** An offset or a length: what does not fit into the answer cannot be one. */
function lengthAt(bytes: Buffer, at: number): number {
  const value = smallAt(bytes, at);
  if (value === undefined || value > bytes.length) throw new NotTheContract();
  return value;
}

function textAt(bytes: Buffer, at: number): string {
  const start = at + WORD;
  const end = start + lengthAt(bytes, at);
  if (end > bytes.length) throw new NotTheContract();
  return bytes.toString("utf8", start, end);
}
