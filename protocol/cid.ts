/**
 * The CID of an action's code, as a plain `ipfs add` gives it: CIDv0, dag-pb UnixFS, sha2-256, 262,144-byte chunks, 174 links a node.
 * Source: specification §2 "Action"; vectors in test/vectors/cid.json.
 */
import { importer } from "ipfs-unixfs-importer";
import { fixedSize } from "ipfs-unixfs-importer/chunker";
import { balanced } from "ipfs-unixfs-importer/layout";
import { BlackHoleBlockstore } from "blockstore-core";
import { CID } from "multiformats/cid";
import type { Cid } from "./ids";

const CHUNK_BYTES = 262_144;
const LINKS_PER_NODE = 174;
const DAG_PB = 0x70;
const SHA2_256 = 0x12;

export async function cidOfCode(code: string | Uint8Array): Promise<Cid> {
  const content = typeof code === "string" ? Buffer.from(code, "utf8") : code;
  const options = {
    cidVersion: 0 as const,
    rawLeaves: false,
    chunker: fixedSize({ chunkSize: CHUNK_BYTES }),
    layout: balanced({ maxChildrenPerNode: LINKS_PER_NODE }),
  };
  for await (const entry of importer([{ content }], new BlackHoleBlockstore(), options)) return entry.cid.toString() as Cid;
  throw new Error("the importer returned no entry");
}

/** CIDv0, or CIDv1 dag-pb sha2-256 turned into v0; undefined for anything else. */
export function parseCid(text: string): Cid | undefined {
  if (text.length > 128) return undefined;
  try {
    const cid = CID.parse(text);
    if (cid.code !== DAG_PB || cid.multihash.code !== SHA2_256 || cid.multihash.digest.length !== 32) return undefined;
    return cid.toV0().toString() as Cid;
  } catch {
    return undefined;
  }
}
