/**
 * Caches CIDs of recent code by SHA-256: the same actions run repeatedly, and the importer takes ten times as long as
 * the hash.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { cidOfCode } from "./cid";
import type { Cid } from "./ids";

const latest = new LRUCache<string, Cid>({ max: 1_000 });

/** As `cidOfCode`, with a cache; Node only. */
export async function cachedCidOfCode(code: string | Uint8Array): Promise<Cid> {
  const digest = createHash("sha256").update(code).digest("base64");
  const cid = latest.get(digest) ?? (await cidOfCode(code));
  latest.set(digest, cid);
  return cid;
}
