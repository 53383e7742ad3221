/**
 * A worker thread that processes questions one by one, for work that would block the event loop that all requests
 * share.
 */
import { constants, getPriority, setPriority } from "node:os";
import { Worker, parentPort } from "node:worker_threads";

interface Request<Q> {
  readonly id: number;
  readonly question: Q;
}
interface Reply<A> {
  readonly id: number;
  readonly answer?: A;
  readonly failed?: true;
}
interface Waiting<A> {
  resolve(answer: A): void;
  reject(error: Error): void;
}

export class ThreadOf<Q, A> {
  #worker: Worker | undefined;
  #nextId = 0;
  readonly #waiting = new Map<number, Waiting<A>>();
  readonly #file: string;

  /**
   * `file` must call `answerEach`. It is started at the first question and restarted after it fails; it does not keep
   * the process alive.
   */
  constructor(file: string) {
    this.#file = file;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** What is transferred with the question is not this thread's any more. */
  ask(question: Q, transferred: readonly ArrayBuffer[] = []): Promise<A> {
    const worker = (this.#worker ??= this.#start());
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, question } satisfies Request<Q>, transferred);
    });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(this.#file, { env: {}, execArgv: [] });
    worker.unref();
    worker.on("message", (reply: Reply<A>) => this.#settle(reply));
    const fail = (error: Error): void => {
      // A later one may have been started meanwhile.
      if (this.#worker === worker) this.#fail(error);
      void worker.terminate();
    };
    worker.on("error", fail);
    // Its answer could be posted and not be read: nobody knows which it was.
    worker.on("messageerror", fail);
    worker.on("exit", () => fail(new Error("the worker thread ended")));
    return worker;
  }

  #settle({ id, answer, failed }: Reply<A>): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (failed) waiting?.reject(new Error("the worker thread could not answer"));
    else waiting?.resolve(answer as A);
  }

  #fail(error: Error): void {
    this.#worker = undefined;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}

/** Where the cores are busy, the event loop that everybody waits for goes first. */
const NICENESS = 5;

function yieldToOthers(): void {
  try {
    // On Linux this is the priority of the calling thread alone.
    setPriority(Math.min(getPriority() + NICENESS, constants.priority.PRIORITY_LOW));
  } catch {
    // Forbidden here: it works all the same.
  }
}

/** Runs in the thread: answers each question, and transfers what `transferredIn` names. */
export function answerEach<Q, A>(
  work: (question: Q) => A | Promise<A>,
  transferredIn: (answer: A) => readonly ArrayBuffer[] = () => [],
): void {
  yieldToOthers();
  parentPort?.on("message", ({ id, question }: Request<Q>) => {
    // An answer that is nested too deeply cannot be posted.
    (async () => work(question))()
      .then((answer) => parentPort?.postMessage({ id, answer } satisfies Reply<A>, transferredIn(answer)))
      .catch(() => parentPort?.postMessage({ id, failed: true } satisfies Reply<A>));
  });
}
