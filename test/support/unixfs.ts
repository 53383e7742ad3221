/**
 * An independent computation of the CID of a file of at most 174 chunks: builds UnixFS nodes byte by byte from their
 * protobuf schema.
 */
import { createHash } from "node:crypto";
import { base58btc } from "multiformats/bases/base58";

const CHUNK_BYTES = 262_144;

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
const field = (number: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([number * 8 + 2, ...varint(bytes.length)]), bytes]);
const numberField = (number: number, value: number): Buffer => Buffer.from([number * 8, ...varint(value)]);
const multihash = (block: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([0x12, 0x20]), createHash("sha256").update(block).digest()]);

interface Node {
  readonly hash: Buffer;
  readonly bytes: number;
  readonly totalBytes: number;
}

function leaf(chunk: Uint8Array): Node {
  const data = chunk.length === 0 ? [] : [field(2, chunk)];
  const block = field(1, Buffer.concat([numberField(1, 2), ...data, numberField(3, chunk.length)]));
  return { hash: multihash(block), bytes: chunk.length, totalBytes: block.length };
}

function parent(children: readonly Node[]): Node {
  const links = children.map((child) =>
    field(2, Buffer.concat([field(1, child.hash), field(2, Buffer.alloc(0)), numberField(3, child.totalBytes)])),
  );
  const bytes = children.reduce((sum, child) => sum + child.bytes, 0);
  const sizes = children.map((child) => numberField(4, child.bytes));
  const block = Buffer.concat([
    ...links,
    field(1, Buffer.concat([numberField(1, 2), numberField(3, bytes), ...sizes])),
  ]);
  return {
    hash: multihash(block),
    bytes,
    totalBytes: block.length + children.reduce((sum, child) => sum + child.totalBytes, 0),
  };
}

export function cidByHand(content: Uint8Array): string {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < content.length || chunks.length === 0; at += CHUNK_BYTES)
    chunks.push(content.subarray(at, at + CHUNK_BYTES));
  const leaves = chunks.map(leaf);
  let level = leaves;
  while (level.length > 1) {
    const next: Node[] = [];
    for (let at = 0; at < level.length; at += 174) next.push(parent(level.slice(at, at + 174)));
    level = next;
  }
  const root = level[0];
  if (root === undefined) throw new Error("a file has at least one node");
  return base58btc.encode(root.hash).slice(1);
}
