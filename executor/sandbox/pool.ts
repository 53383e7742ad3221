/**
 * The pool of child processes: assigns runs to children, keeps warm children for their owner, replaces children that
 * ended.
 */
import type { Logger } from "pino";
import type { Fetcher } from "../fetcher/types";
import { detectConfinement } from "../confinement/confine";
import { Starter } from "../confinement/starter";
import { FairQueue } from "./fairQueue";
import { FetchBudgets } from "./fetches";
import { ModuleCache } from "./imports";
import { DEFAULT_FIRST_UID, residentCapBytes } from "./launch";
import { memoryOfChildren, toEnd } from "./memory";
import { RunSession } from "./session";
import { Starts } from "./starts";
import {
  IsolationTooWeak,
  PoolClosed,
  RunCancelled,
  type PoolStats,
  type RunJob,
  type RunLimits,
  type RunOutcome,
  type SandboxLevel,
  type SandboxPool,
} from "./types";
import { Worker } from "./worker";

export interface PoolOptions {
  /** The deployment's limits, for which children are prepared; a job's own may be lower. */
  limits: RunLimits;
  /** Concurrent runs. */
  size: number;
  logger: Logger;
  fetcher: Fetcher;
  /** Base URL of imported modules; must end in the path below which packages are. */
  moduleOrigin?: string;
  /** Files and sockets that children must not be able to open; tested by the self-test at start. */
  secretPaths?: string[];
  /** Barriers that do not hold for the fetcher or the keyholder. */
  missingElsewhere?: readonly string[];
  /** Refuse to start without full isolation (production). */
  requireFullIsolation?: boolean;
  /** First of the user ids of the children. */
  firstUid?: number;
  /** Maximum number of waiting runs; default 16 per slot. */
  queueCapacity?: number;
  /** Maximum number of children, including warm ones; default twice the slots plus two. */
  maxChildren?: number;
  /** Memory of all children together, in bytes; default half of what the container allows. */
  memoryBytes?: number;
  recycle?: { runs: number; ageMs: number };
}

export const DEFAULT_MODULE_ORIGIN = "https://cdn.jsdelivr.net/npm/";
/** A young child is slow: V8 has compiled little of it. One that holds much memory is recycled earlier. */
const RECYCLE = { runs: 10_000, ageMs: 10 * 60_000 };
const SWEEP_MS = 15_000;
const MEMORY_CHECK_MS = 100;
const START_ATTEMPTS = 3;
const DRAIN_MS = 8_000;

interface Waiting {
  job: RunJob;
  resolve(outcome: RunOutcome): void;
  reject(error: Error): void;
}

/**
 * Starts the pool and runs the self-test in a child. Throws IsolationTooWeak when less isolation is reached than
 * required.
 */
export async function createSandboxPool(options: PoolOptions): Promise<SandboxPool> {
  const pool = new Pool(options);
  try {
    await pool.start();
  } catch (error) {
    await pool.close(0);
    throw error;
  }
  return pool;
}

class Pool implements SandboxPool {
  readonly #queue: FairQueue<Waiting>;
  readonly #modules: ModuleCache;
  readonly #budgets = new FetchBudgets();
  readonly #recycle: { runs: number; ageMs: number };
  readonly #maxChildren: number;
  readonly #starter = new Starter();
  readonly #starts = new Starts();
  /** Every child process that has not exited. */
  readonly #workers = new Set<Worker>();
  /** Idle children that belong to an owner, longest idle first. */
  #idle: Worker[] = [];
  /** Children that have not served a run. */
  #unused: Promise<Worker>[] = [];
  readonly #freeUids: number[] = [];
  readonly #sessions = new Map<RunSession, Worker>();
  #level: SandboxLevel = { level: "none", missing: ["the sandbox has not been tested"] };
  #isClosing = false;
  /** The pool closes and no run may start any more. */
  #isDrained = false;
  #nextRun = 1;
  #counts = { runs: 0, crashes: 0 };
  readonly #sweeper: NodeJS.Timeout;
  readonly #memoryBytes: number;
  readonly #memoryWatch: NodeJS.Timeout;
  #onIdle: (() => void) | undefined;
  readonly #options: PoolOptions;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { size, fetcher } = options;
    this.#queue = new FairQueue({ slots: size, capacity: options.queueCapacity ?? size * 16 });
    this.#modules = new ModuleCache(fetcher, options.moduleOrigin ?? DEFAULT_MODULE_ORIGIN);
    this.#recycle = options.recycle ?? RECYCLE;
    this.#maxChildren = Math.max(options.maxChildren ?? size * 2 + 2, size + 1);
    const firstUid = options.firstUid ?? DEFAULT_FIRST_UID;
    // More ids than children: an id is reused only after its last child has exited.
    for (let i = this.#maxChildren * 2; i > 0; i--) this.#freeUids.push(firstUid + i - 1);
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
    this.#memoryBytes = options.memoryBytes ?? memoryOfChildren();
    this.#memoryWatch = setInterval(() => this.#checkMemory(), MEMORY_CHECK_MS).unref();
  }

  async start(): Promise<void> {
    const problem = await detectConfinement();
    if (problem !== undefined) this.#options.logger.warn({ problem }, "bubblewrap does not work here");
    // Tested by a child without Node's permission model, which would refuse the attempts before the kernel sees them.
    const probe = await this.#startWorker({ withoutPermissionModel: true });
    const barriers = await probe.selfTest(this.#options.secretPaths ?? []);
    probe.kill("the self-test is over");
    const first = await this.#startWorker();
    const permissions = await first.selfTest([]);
    const missing = [...barriers.missing, ...permissions.missing, ...(this.#options.missingElsewhere ?? [])];
    const held = barriers.held + permissions.held;
    this.#level = { level: missing.length === 0 ? "full" : held > 0 ? "partial" : "none", missing };
    if (this.#options.requireFullIsolation && this.#level.level !== "full") throw new IsolationTooWeak(missing);
    this.#unused.push(Promise.resolve(first));
    this.#fillUnused();
    await Promise.all(this.#unused);
  }

  async run(job: RunJob): Promise<RunOutcome> {
    if (this.#isClosing) throw new PoolClosed();
    if (job.signal?.aborted) throw new RunCancelled();
    const { promise, resolve, reject } = Promise.withResolvers<RunOutcome>();
    const waiting: Waiting = { job, resolve, reject };
    const onAbort = () => {
      if (this.#queue.remove(job.account, waiting)) reject(new RunCancelled());
    };
    this.#queue.add(job.account, waiting);
    job.signal?.addEventListener("abort", onAbort, { once: true });
    this.#dispatch();
    // The listener would keep the whole run in memory as long as the signal lives.
    return promise.finally(() => job.signal?.removeEventListener("abort", onAbort));
  }

  stats(): PoolStats {
    return {
      level: this.#level,
      size: this.#options.size,
      children: this.#workers.size,
      busy: this.#queue.running,
      queued: this.#queue.waiting,
      ...this.#counts,
    };
  }

  async close(drainMs = DRAIN_MS): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#sweeper);
    clearInterval(this.#memoryWatch);
    if (this.#queue.running + this.#queue.waiting > 0 && drainMs > 0) await this.#untilIdle(drainMs);
    this.#isDrained = true;
    for (const { reject } of this.#queue.drain()) reject(new PoolClosed());
    for (const session of this.#sessions.keys()) session.abandon("the service is shutting down");
    const ends = [...this.#workers].map((worker) => worker.exited);
    for (const worker of this.#workers) worker.kill("the pool closed");
    await Promise.allSettled([...ends, ...this.#unused]);
    this.#starter.close();
  }

  #untilIdle(drainMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, drainMs);
      this.#onIdle = () => (clearTimeout(timer), resolve());
    });
  }

  #dispatch(): void {
    while (this.#starts.isFree) {
      const next = this.#queue.take();
      if (next === undefined) return;
      void this.#serve(next);
    }
  }

  async #serve({ job, resolve, reject }: Waiting): Promise<void> {
    const startedAt = performance.now();
    const started = this.#starts.begin(() => this.#dispatch());
    try {
      resolve(await this.#runOn(await this.#acquire(affinityOf(job)), job, started));
    } catch (error) {
      if (error instanceof RunCancelled || error instanceof PoolClosed) reject(error);
      else resolve(this.#notStarted(error));
    } finally {
      this.#queue.done(job.account, performance.now() - startedAt);
      started();
      this.#dispatch();
      if (this.#queue.running + this.#queue.waiting === 0) this.#onIdle?.();
    }
  }

  /** No child could be started: the service's fault, and no code ran. */
  #notStarted(error: unknown): RunOutcome {
    this.#options.logger.error({ err: error }, "no sandbox child could be started");
    const message = "the sandbox could not be started";
    return { response: "null", logs: "", error: { code: "sandbox_crashed", message }, durationMs: 0, fault: "service" };
  }

  async #runOn(worker: Worker, job: RunJob, onWaits: () => void): Promise<RunOutcome> {
    const session = new RunSession(this.#nextRun++, job, worker, {
      fetcher: this.#options.fetcher,
      budgets: this.#budgets,
      modules: this.#modules,
      logger: this.#options.logger,
      onWaits,
    });
    this.#sessions.set(session, worker);
    this.#counts.runs++;
    worker.runs++;
    worker.affinity = affinityOf(job);
    try {
      if (job.signal?.aborted) throw new RunCancelled();
      job.onStarted?.();
      session.start();
      return await session.outcome;
    } finally {
      this.#sessions.delete(session);
      this.#release(worker);
    }
  }

  /** A warm child of this owner, else an unused one. */
  async #acquire(affinity: string): Promise<Worker> {
    const warm = this.#idle.findLast((worker) => worker.affinity === affinity && worker.isAlive);
    if (warm) {
      this.#idle.splice(this.#idle.indexOf(warm), 1);
      return warm;
    }
    for (let attempt = 1; ; attempt++) {
      try {
        const worker = await (this.#unused.shift() ?? this.#startWorker());
        this.#fillUnused();
        if (worker.isAlive) return worker;
      } catch (error) {
        if (this.#isClosing) throw new PoolClosed();
        if (attempt >= START_ATTEMPTS) throw error;
      }
    }
  }

  #release(worker: Worker): void {
    if (!worker.isAlive) return this.#fillUnused();
    if (this.#isClosing || this.#isUsedUp(worker)) {
      worker.kill("recycled");
      return this.#fillUnused();
    }
    this.#idle.push(worker);
    this.#evictIdle(0);
  }

  #isUsedUp(worker: Worker): boolean {
    const isOld = worker.runs >= this.#recycle.runs || Date.now() - worker.bornAt >= this.#recycle.ageMs;
    return isOld || worker.residentBytes() > residentCapBytes(this.#options.limits.heapMiB) / 2;
  }

  /** Prepares unused children, so that a new owner does not wait for a fork. */
  #fillUnused(): void {
    if (this.#isClosing) return;
    const wanted = Math.min(2, this.#options.size);
    while (this.#unused.length < wanted) {
      const unused = this.#startWorker();
      // A failed start rejects where the child is taken.
      unused.catch(() => undefined);
      this.#unused.push(unused);
    }
  }

  /** Ends the longest idle children until `more` new ones fit; returns the children that are exiting. */
  #evictIdle(more: number): Worker[] {
    const exiting = [...this.#workers].filter((worker) => !worker.isAlive);
    for (let excess = this.#workers.size - exiting.length + more - this.#maxChildren; excess > 0; excess--) {
      const idle = this.#idle.shift();
      if (idle === undefined) break;
      idle.kill("evicted");
      exiting.push(idle);
    }
    return exiting;
  }

  #sweep(): void {
    this.#idle = this.#idle.filter((worker) => {
      if (worker.isAlive && !this.#isUsedUp(worker)) return true;
      worker.kill("recycled");
      return false;
    });
  }

  #checkMemory(): void {
    if (this.#sessions.size === 0) return;
    const idle = this.#idle.map((worker) => ({ of: worker, bytes: worker.unsharedBytes() }));
    const busy = [...this.#sessions].map(([session, worker]) => ({ of: session, bytes: worker.unsharedBytes() }));
    const over = toEnd(idle, busy, this.#memoryBytes, this.#options.size);
    for (const worker of over.idle) worker.kill("memory is needed");
    this.#idle = this.#idle.filter((worker) => worker.isAlive);
    over.busy?.endForMemory();
  }

  async #startWorker(options: { withoutPermissionModel?: boolean } = {}): Promise<Worker> {
    while (this.#workers.size >= this.#maxChildren) {
      const exiting = this.#evictIdle(1);
      if (exiting.length === 0) break;
      // A killed child has its memory until it has exited.
      await Promise.race(exiting.map((worker) => worker.exited));
    }
    if (this.#isDrained) throw new PoolClosed();
    const uid = this.#freeUids.pop() ?? this.#options.firstUid ?? DEFAULT_FIRST_UID;
    const { limits, logger } = this.#options;
    const worker = new Worker({ heapMiB: limits.heapMiB, uid, ...options }, this.#starter, logger);
    this.#workers.add(worker);
    void worker.exited.then((exit) => {
      this.#workers.delete(worker);
      this.#idle = this.#idle.filter((other) => other !== worker);
      this.#freeUids.push(uid);
      if (exit.killReason === undefined) this.#counts.crashes++;
    });
    await worker.ready();
    return worker;
  }
}

/**
 * A child serves one account, key and CID only: code that survives a run through an engine flaw must not act with other
 * permissions.
 */
const affinityOf = ({ account, key, cid }: RunJob): string => `${account}\n${key}\n${cid}`;
