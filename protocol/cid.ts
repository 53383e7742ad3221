/**
 * The CID of an action's code, as `ipfs add` computes it: CIDv0, dag-pb UnixFS, sha2-256, chunks of 262,144 bytes, 174
 * links per node.
 * Source: docs/conformance.md §2; test/vectors/cid.json.
 */
import { importer } from "ipfs-unixfs-importer";
import { fixedSize } from "ipfs-unixfs-importer/chunker";
import { balanced } from "ipfs-unixfs-importer/layout";
import { BlackHoleBlockstore } from "blockstore-core";
import type { Cid } from "./ids";

export * from "./cidText";

const CHUNK_BYTES = 262_144;
const LINKS_PER_NODE = 174;

/** @param pause awaited after each chunk, so that large code does not hold an event loop */
export async function cidOfCode(code: string | Uint8Array, pause?: () => Promise<unknown>): Promise<Cid> {
  const bytes = typeof code === "string" ? new TextEncoder().encode(code) : code;
  const content = pause === undefined ? bytes : chunksOf(bytes, pause);
  const options = {
    cidVersion: 0 as const,
    rawLeaves: false,
    chunker: fixedSize({ chunkSize: CHUNK_BYTES }),
    layout: balanced({ maxChildrenPerNode: LINKS_PER_NODE }),
  };
  for await (const entry of importer([{ content }], new BlackHoleBlockstore(), options))
    return entry.cid.toString() as Cid;
  throw new Error("the importer returned no entry");
}

async function* chunksOf(bytes: Uint8Array, pause: () => Promise<unknown>): AsyncIterable<Uint8Array> {
  let at = 0;
  do {
    yield bytes.subarray(at, (at += CHUNK_BYTES));
    await pause();
  } while (at < bytes.length);
}
