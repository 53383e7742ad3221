/** The CID of code, computed off the main thread when the code is large, so that a large run does not hold up the small ones. */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { rememberedCidOfCode } from "./cidMemory";
import type { Cid } from "./ids";

const INLINE_BYTES = 64 * 1024;
/** The thread runs as built, also when this file itself runs from its source. */
const THREAD = join(__dirname.endsWith(join("dist", "protocol")) ? __dirname : join(__dirname, "..", "dist", "protocol"), "cidThread.js");

interface Answer {
  readonly id: number;
  readonly cid?: string;
}
interface Waiting {
  resolve(cid: Cid): void;
  reject(error: Error): void;
}

export class CidComputer {
  #worker: Worker | undefined;
  #nextId = 0;
  readonly #waiting = new Map<number, Waiting>();

  /** Codes that wait for the thread. */
  get waiting(): number {
    return this.#waiting.size;
  }

  of(code: Buffer): Promise<Cid> {
    return code.length <= INLINE_BYTES ? rememberedCidOfCode(code) : this.#inWorker(code);
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #inWorker(code: Buffer): Promise<Cid> {
    const worker = (this.#worker ??= this.#start());
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, code });
    });
  }

  #start(): Worker {
    const worker = new Worker(THREAD, { env: {}, execArgv: [] });
    worker.unref();
    worker.on("message", (answer: Answer) => this.#settle(answer));
    worker.on("error", (error) => this.#fail(error));
    worker.on("exit", () => this.#fail(new Error("the CID worker ended")));
    return worker;
  }

  #settle({ id, cid }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (cid === undefined) waiting?.reject(new Error("the CID could not be computed"));
    else waiting?.resolve(cid as Cid);
  }

  #fail(error: Error): void {
    this.#worker = undefined;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}
