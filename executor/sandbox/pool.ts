/** The pool of child processes: gives each run a child, keeps warm ones for their owner, replaces what has ended. */
import type { Logger } from "pino";
import type { Fetcher } from "../fetcher/types";
import { findWalls } from "../walls/confine";
import { FairQueue } from "./fairQueue";
import { FetchBudgets } from "./fetches";
import { ModuleCache } from "./imports";
import { DEFAULT_FIRST_UID, residentCapBytes } from "./launch";
import { memoryOfChildren, privateBytes, toEnd } from "./memory";
import { RunSession } from "./session";
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
  /** The deployment's limits; a job's own may be lower. Decides what children are prepared for. */
  limits: RunLimits;
  /** Runs at once. */
  size: number;
  logger: Logger;
  fetcher: Fetcher;
  /** Where imported modules come from; must end in the path packages hang below. */
  moduleOrigin?: string;
  /** Files and sockets no child may be able to open; tried by each start's self-test. */
  secretPaths?: string[];
  /** Walls that the fetchers or the keyholder itself lack. */
  missingElsewhere?: readonly string[];
  /** Refuse to start below full isolation (production). */
  requireFullIsolation?: boolean;
  /** First of the user ids of the children. */
  firstUid?: number;
  /** Waiting runs altogether, default 16 for each slot. */
  queueCapacity?: number;
  /** Child processes altogether, warm ones included; default twice the slots and two. */
  maxChildren?: number;
  /** What all children may keep together, in bytes; default half of what the container allows. */
  memoryBytes?: number;
  recycle?: { runs: number; ageMs: number };
}

export const DEFAULT_MODULE_ORIGIN = "https://cdn.jsdelivr.net/npm/";
const RECYCLE = { runs: 500, ageMs: 10 * 60_000 };
const SWEEP_MS = 15_000;
const MEMORY_CHECK_MS = 100;
const START_ATTEMPTS = 3;
const DRAIN_MS = 8_000;

interface Waiting {
  job: RunJob;
  resolve(outcome: RunOutcome): void;
  reject(error: Error): void;
}

/** Starts the pool and has a child test its walls. Throws IsolationTooWeak when more is demanded than this machine gives. */
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
  private readonly queue: FairQueue<Waiting>;
  private readonly modules: ModuleCache;
  private readonly budgets = new FetchBudgets();
  private readonly recycle: { runs: number; ageMs: number };
  private readonly maxChildren: number;
  /** Every child process that has not ended. */
  private readonly workers = new Set<Worker>();
  /** Children with an owner and nothing to do, longest idle first. */
  private idle: Worker[] = [];
  /** Children that have served nobody yet. */
  private blanks: Promise<Worker>[] = [];
  private readonly freeUids: number[] = [];
  private readonly sessions = new Map<RunSession, Worker>();
  private level: SandboxLevel = { level: "none", missing: ["the sandbox has not been tested"] };
  private isClosing = false;
  private nextRun = 1;
  private counts = { runs: 0, crashes: 0 };
  private readonly sweeper: NodeJS.Timeout;
  private readonly memoryBytes: number;
  private readonly memoryWatch: NodeJS.Timeout;
  private onIdle: (() => void) | undefined;

  constructor(private readonly options: PoolOptions) {
    const { size, fetcher } = options;
    this.queue = new FairQueue({ slots: size, capacity: options.queueCapacity ?? size * 16 });
    this.modules = new ModuleCache(fetcher, options.moduleOrigin ?? DEFAULT_MODULE_ORIGIN);
    this.recycle = options.recycle ?? RECYCLE;
    this.maxChildren = Math.max(options.maxChildren ?? size * 2 + 2, size + 1);
    const firstUid = options.firstUid ?? DEFAULT_FIRST_UID;
    // More ids than children: one is reused only after its last holder has ended.
    for (let i = this.maxChildren * 2; i > 0; i--) this.freeUids.push(firstUid + i - 1);
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS).unref();
    this.memoryBytes = options.memoryBytes ?? memoryOfChildren();
    this.memoryWatch = setInterval(() => this.checkMemory(), MEMORY_CHECK_MS).unref();
  }

  async start(): Promise<void> {
    const complaint = await findWalls();
    if (complaint !== undefined) this.options.logger.warn({ complaint }, "bubblewrap does not work here");
    // Node's own fence would stop the attempts before they reach the kernel's walls: a child without it tries those.
    const probe = await this.startWorker({ unfenced: true });
    const walls = await probe.selfTest(this.options.secretPaths ?? []);
    probe.kill("the self-test is over");
    const first = await this.startWorker();
    const fence = await first.selfTest([]);
    const missing = [...walls.missing, ...fence.missing, ...(this.options.missingElsewhere ?? [])];
    const held = walls.held + fence.held;
    this.level = { level: missing.length === 0 ? "full" : held > 0 ? "partial" : "none", missing };
    if (this.options.requireFullIsolation && this.level.level !== "full") throw new IsolationTooWeak(missing);
    this.blanks.push(Promise.resolve(first));
    this.fillBlanks();
    await Promise.all(this.blanks);
  }

  async run(job: RunJob): Promise<RunOutcome> {
    if (this.isClosing) throw new PoolClosed();
    if (job.signal?.aborted) throw new RunCancelled();
    const { promise, resolve, reject } = Promise.withResolvers<RunOutcome>();
    const waiting: Waiting = { job, resolve, reject };
    const onAbort = () => {
      if (this.queue.remove(job.account, waiting)) reject(new RunCancelled());
    };
    this.queue.add(job.account, waiting);
    job.signal?.addEventListener("abort", onAbort, { once: true });
    this.dispatch();
    // A signal that somebody listens to is kept, and with it the whole run.
    return promise.finally(() => job.signal?.removeEventListener("abort", onAbort));
  }

  stats(): PoolStats {
    const { queue, level, counts, options, workers } = this;
    return { level, size: options.size, children: workers.size, busy: queue.running, queued: queue.waiting, ...counts };
  }

  async close(drainMs = DRAIN_MS): Promise<void> {
    this.isClosing = true;
    clearInterval(this.sweeper);
    clearInterval(this.memoryWatch);
    if (this.queue.running + this.queue.waiting > 0 && drainMs > 0) await this.untilIdle(drainMs);
    for (const { reject } of this.queue.drain()) reject(new PoolClosed());
    for (const session of this.sessions.keys()) session.abandon("the service is shutting down");
    const ends = [...this.workers].map((worker) => worker.exited);
    for (const worker of this.workers) worker.kill("the pool closed");
    await Promise.allSettled([...ends, ...this.blanks]);
  }

  private untilIdle(drainMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, drainMs);
      this.onIdle = () => (clearTimeout(timer), resolve());
    });
  }

  private dispatch(): void {
    for (let next = this.queue.take(); next; next = this.queue.take()) void this.serve(next);
  }

  private async serve({ job, resolve, reject }: Waiting): Promise<void> {
    const startedAt = performance.now();
    try {
      resolve(await this.runOn(await this.acquire(affinityOf(job)), job));
    } catch (error) {
      if (error instanceof RunCancelled || error instanceof PoolClosed) reject(error);
      else resolve(this.notStarted(error));
    } finally {
      this.queue.done(job.account, performance.now() - startedAt);
      this.dispatch();
      if (this.queue.running + this.queue.waiting === 0) this.onIdle?.();
    }
  }

  /** No child could be had: our fault, and no code ran. */
  private notStarted(error: unknown): RunOutcome {
    this.options.logger.error({ err: error }, "no sandbox child could be started");
    const message = "the sandbox could not be started";
    return { response: "null", logs: "", error: { code: "sandbox_crashed", message }, durationMs: 0, fault: "ours" };
  }

  private async runOn(worker: Worker, job: RunJob): Promise<RunOutcome> {
    const session = new RunSession(this.nextRun++, job, worker, {
      fetcher: this.options.fetcher,
      budgets: this.budgets,
      modules: this.modules,
      logger: this.options.logger,
    });
    this.sessions.set(session, worker);
    this.counts.runs++;
    worker.runs++;
    worker.affinity = affinityOf(job);
    try {
      if (job.signal?.aborted) throw new RunCancelled();
      job.onStarted?.();
      session.start();
      return await session.outcome;
    } finally {
      this.sessions.delete(session);
      this.release(worker);
    }
  }

  /** The warm child of this owner, else one that has served nobody. */
  private async acquire(affinity: string): Promise<Worker> {
    const warm = this.idle.findLast((worker) => worker.affinity === affinity && worker.isAlive);
    if (warm) {
      this.idle.splice(this.idle.indexOf(warm), 1);
      return warm;
    }
    for (let attempt = 1; ; attempt++) {
      try {
        const worker = await (this.blanks.shift() ?? this.startWorker());
        this.fillBlanks();
        if (worker.isAlive) return worker;
      } catch (error) {
        if (this.isClosing) throw new PoolClosed();
        if (attempt >= START_ATTEMPTS) throw error;
      }
    }
  }

  private release(worker: Worker): void {
    if (!worker.isAlive) return this.fillBlanks();
    if (this.isClosing || this.isUsedUp(worker)) {
      worker.kill("recycled");
      return this.fillBlanks();
    }
    this.idle.push(worker);
    this.makeRoom();
  }

  private isUsedUp(worker: Worker): boolean {
    const isOld = worker.runs >= this.recycle.runs || Date.now() - worker.bornAt >= this.recycle.ageMs;
    return isOld || worker.residentBytes() > residentCapBytes(this.options.limits.heapMiB) / 2;
  }

  /** Keeps a fork off the path of the next new owner. */
  private fillBlanks(): void {
    if (this.isClosing) return;
    const wanted = Math.min(2, this.options.size);
    while (this.blanks.length < wanted) {
      const blank = this.startWorker();
      // A failed start is seen by whoever takes it.
      blank.catch(() => undefined);
      this.blanks.push(blank);
    }
  }

  /** Ends the children idle longest while there are too many. */
  private makeRoom(): void {
    for (let excess = this.workers.size - this.maxChildren; excess > 0; excess--) this.idle.shift()?.kill("made room");
  }

  private sweep(): void {
    this.idle = this.idle.filter((worker) => {
      if (worker.isAlive && !this.isUsedUp(worker)) return true;
      worker.kill("recycled");
      return false;
    });
  }

  private checkMemory(): void {
    if (this.sessions.size === 0) return;
    const idle = this.idle.map((worker) => ({ of: worker, bytes: privateBytes(worker.pid) }));
    const busy = [...this.sessions].map(([session, worker]) => ({ of: session, bytes: privateBytes(worker.pid) }));
    const over = toEnd(idle, busy, this.memoryBytes, this.options.size);
    for (const worker of over.idle) worker.kill("memory is needed");
    this.idle = this.idle.filter((worker) => worker.isAlive);
    over.busy?.endForMemory();
  }

  private async startWorker(options: { unfenced?: boolean } = {}): Promise<Worker> {
    this.makeRoom();
    const uid = this.freeUids.pop() ?? this.options.firstUid ?? DEFAULT_FIRST_UID;
    const worker = new Worker({ heapMiB: this.options.limits.heapMiB, uid, ...options }, this.options.logger);
    this.workers.add(worker);
    void worker.exited.then((exit) => {
      this.workers.delete(worker);
      this.idle = this.idle.filter((other) => other !== worker);
      this.freeUids.push(uid);
      if (exit.byUs === undefined) this.counts.crashes++;
    });
    await worker.ready();
    return worker;
  }
}

/** Code that waits in a child after a flaw of the engine would otherwise speak under the next code's permission. */
const affinityOf = ({ account, key, cid }: RunJob): string => `${account}\n${key}\n${cid}`;
