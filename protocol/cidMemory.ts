/** CIDs of the latest codes: the same actions run again and again, and the importer takes ten times what the hash does that names them here. */
import { createHash } from "node:crypto";
import { cidOfCode } from "./cid";
import type { Cid } from "./ids";

const MOST = 1_000;
const latest = new Map<string, Cid>();

/** As `cidOfCode`; on Node only. */
export async function rememberedCidOfCode(code: string | Uint8Array): Promise<Cid> {
  const digest = createHash("sha256").update(code).digest("base64");
  const cid = latest.get(digest) ?? (await cidOfCode(code));
  // What was used last stands last.
  latest.delete(digest);
  latest.set(digest, cid);
  const [oldest] = latest.keys();
  if (oldest !== undefined && latest.size > MOST) latest.delete(oldest);
  return cid;
}
