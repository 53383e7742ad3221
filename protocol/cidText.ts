/**
 * Parsing of CIDs. Separate from hashing (cid.ts) so that the SDK needs no importer in a browser.
 * Source: docs/conformance.md §2.
 */
import { CID } from "multiformats/cid";
import type { Cid } from "./ids";

const DAG_PB = 0x70;
const SHA2_256 = 0x12;

/** CIDv0, or CIDv1 dag-pb sha2-256 converted to v0; undefined for anything else. */
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
