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

export async function cidOfCode(code: string | Uint8Array): Promise<Cid> {
  const content = typeof code === "string" ? new TextEncoder().encode(code) : code;
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
