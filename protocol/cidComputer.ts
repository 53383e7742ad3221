/** Computes CIDs of code; large code in a thread, so that it does not delay small requests. */
import { builtFile } from "./built";
import { ThreadOf } from "./threadOf";
import type { Cid } from "./ids";
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { cidOfCode } from "./cid";

const INLINE_BYTES = 64 * 1024;

export class CidComputer {
  readonly #thread = new ThreadOf<string | Uint8Array, Cid>(builtFile(__dirname, "cidThread.js"));

  /** The number of codes waiting for the thread. */
  get waiting(): number {
    return this.#thread.waiting;
  }

  /** Text is passed to the thread unencoded: encoding it would block this thread. */
  of(code: string | Buffer): Promise<Cid> {
    return code.length <= INLINE_BYTES ? cachedCidOfCode(code) : this.#thread.ask(code);
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

/** By SHA-256: the same actions run repeatedly, and the importer takes ten times as long as the hash. */
const latest = new LRUCache<string, Cid>({ max: 1_000 });

/** As `cidOfCode`, with a cache; Node only. */
export async function cachedCidOfCode(code: string | Uint8Array): Promise<Cid> {
  const digest = createHash("sha256").update(code).digest("base64");
  const cid = latest.get(digest) ?? (await cidOfCode(code));
  latest.set(digest, cid);
  return cid;
}
