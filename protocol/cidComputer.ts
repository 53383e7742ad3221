/** Computes CIDs of code; large code in a thread, so that it does not delay small requests. */
import { cachedCidOfCode } from "./cidCache";
import { builtFile } from "./built";
import { ThreadOf } from "./threadOf";
import type { Cid } from "./ids";

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
