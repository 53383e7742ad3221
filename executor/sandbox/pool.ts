/**
 * The pool of child processes: assigns runs to children, keeps warm children for their owner, replaces children that
 * ended.
 */
import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import type { Fetcher } from "../fetcher/types";
import { Awake } from "../awake";
import { detectConfinement, NOT_INSTALLED } from "../confinement/confine";
import { Starter } from "../confinement/starter";
import { Crowded, FairShare, inScope, Preempted, type Grant, type Scope } from "../../protocol/fairShare";
import { defined } from "../../protocol/defined";
import { MIB, SHARED_LIMITS } from "../../protocol/limits";
import { RunShares } from "./fetches";
import { ModuleCache } from "./imports";
import { DEFAULT_FIRST_UID, residentCapBytes } from "./launch";
import { CHILD_MIB, memoryOfChildren, toEnd } from "./memory";
import { RunSession } from "./session";
import {
  IsolationTooWeak,
  PoolClosed,
  RunCancelled,
  type PoolStats,
  type RpcUrls,
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
  /** Runs that compute at once. More are under way while some of them sleep or wait. */
  size: number;
  logger: Logger;
  fetcher: Fetcher;
  /** Base URL of imported modules; must end in the path below which packages are. */
  moduleOrigin?: string;
  /** What `getRpcUrl` answers. */
  rpcUrls?: RpcUrls;
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
const CHECK_MS = 100;
/** Children that are prepared for the next runs. */
const UNUSED_CHILDREN = 2;
/** Part of the children that stay warm for those who run something often, however many runs of others sleep. */
const KEPT_WARM = 1 / 4;
const START_ATTEMPTS = 3;
const DRAIN_MS = 8_000;
/** A run that has computed for this long no longer keeps others from starting. */
const MAX_START_MS = 10;
/** A run that is ended costs its child: starting new ones must not take the cores from everybody. */
const REVOKE_EVERY_MS = 250;

/** A run that has no child yet: the first that is free gets it, one of its owner's or a new one. */
interface Childless {
  readonly affinity: string;
  readonly take: (worker: Worker) => void;
}

/** A run in a child. */
interface Placed {
  readonly worker: Worker;
  readonly account: string;
  /** Among the runs under way. */
  readonly underWay: Grant;
  /** Its place among those that compute. */
  readonly place: Grant;
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

/** The reason goes to operators, who may have installed it and forbidden what it needs. */
const withoutBubblewrap = (problem: string): string =>
  problem === NOT_INSTALLED
    ? "without bubblewrap children may make any system call: apt-get install bubblewrap"
    : `bubblewrap does not work here, so children may make any system call: ${problem.split("\n", 1)[0]}`;

class Pool implements SandboxPool {
  /** Runs under way: as many as there is memory for. */
  readonly #runs: FairShare;
  /** Those of them that compute. */
  readonly #places: FairShare;
  /** More starts at once than cores would only push each other out of the caches. */
  readonly #starts = new FairShare({ total: availableParallelism(), unit: 0 });
  /** Of those that have no warm child: a start of one takes far longer, and the others do not wait for it. */
  readonly #childStarts: FairShare;
  readonly #modules: ModuleCache;
  readonly #shares: RunShares;
  readonly #recycle: { runs: number; ageMs: number };
  readonly #maxChildren: number;
  readonly #starter = new Starter();
  readonly #awake = new Awake();
  /** Every child process that has not exited. */
  readonly #workers = new Set<Worker>();
  /** Idle children that belong to an owner, longest idle first. */
  #idle: Worker[] = [];
  /** Children that have not served a run. */
  #unused: Promise<Worker>[] = [];
  readonly #freeUids: number[] = [];
  readonly #sessions = new Map<RunSession, Placed>();
  readonly #childless = new Set<Childless>();
  /** Runs that wait, to be removed from the queue by an abort. */
  readonly #queued = new Set<AbortController>();
  #running = 0;
  /** Memory of the children with runs at the last check, in bytes, and how many there were. */
  #measured = { bytes: 0, runs: 0 };
  #level: SandboxLevel = { level: "none", missing: ["the sandbox has not been tested"] };
  #isClosing = false;
  /** The pool closes and no run may start any more. */
  #isDrained = false;
  #nextRun = 1;
  #counts = { runs: 0, crashes: 0 };
  readonly #sweeper: NodeJS.Timeout;
  readonly #memoryBytes: number;
  readonly #childWatch: NodeJS.Timeout;
  #onIdle: (() => void) | undefined;
  readonly #options: PoolOptions;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { size, fetcher } = options;
    const { patienceMs } = SHARED_LIMITS;
    this.#modules = new ModuleCache(fetcher, options.moduleOrigin ?? DEFAULT_MODULE_ORIGIN);
    this.#recycle = options.recycle ?? RECYCLE;
    this.#maxChildren = Math.max(options.maxChildren ?? size * 2 + 2, size + 1);
    this.#runs = new FairShare({
      total: runsUnderWay(this.#maxChildren - UNUSED_CHILDREN, size),
      mostWaiting: options.queueCapacity ?? size * 16,
      patienceMs,
      revokeEveryMs: REVOKE_EVERY_MS,
      mayGrant: () => this.#hasMemory(),
    });
    this.#places = new FairShare({ total: size, patienceMs, revokeEveryMs: REVOKE_EVERY_MS });
    // A start may go on after its run got another child: with so many, children are below twice their maximum.
    this.#childStarts = new FairShare({ total: Math.min(availableParallelism(), size), unit: 0 });
    this.#shares = new RunShares(options.limits.fetchBytes);
    const firstUid = options.firstUid ?? DEFAULT_FIRST_UID;
    // More ids than children: an id is reused only after its last child has exited.
    for (let i = this.#maxChildren * 2; i > 0; i--) this.#freeUids.push(firstUid + i - 1);
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
    this.#memoryBytes = options.memoryBytes ?? memoryOfChildren();
    this.#childWatch = setInterval(() => this.#checkChildren(), CHECK_MS).unref();
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
    const missing = [
      // The cause of most others, and what helps, come first.
      ...(problem === undefined ? [] : [withoutBubblewrap(problem)]),
      ...barriers.missing,
      ...permissions.missing,
      ...(this.#options.missingElsewhere ?? []),
    ];
    const held = barriers.held + permissions.held;
    this.#level = { level: missing.length === 0 ? "full" : held > 0 ? "partial" : "none", missing };
    if (this.#options.requireFullIsolation && this.#level.level !== "full") throw new IsolationTooWeak(missing);
    this.#unused.push(Promise.resolve(first));
    this.#fillUnused();
    await Promise.all(this.#unused);
  }

  async run(job: RunJob): Promise<RunOutcome> {
    if (this.#isClosing) throw new PoolClosed();
    if (job.signal?.aborted || job.left?.aborted) throw new RunCancelled();
    const queued = new AbortController();
    const onAbort = (): void => queued.abort(new RunCancelled());
    for (const signal of [job.signal, job.left]) signal?.addEventListener("abort", onAbort, { once: true });
    // Not after it has begun: a scope that has ended already cannot be told that others wait for its place. Nor would a
    // listener keep the whole run in memory as long as the signal lives.
    const leave = (): void => {
      for (const signal of [job.signal, job.left]) signal?.removeEventListener("abort", onAbort);
    };
    const begins: RunJob = { ...job, onStarted: () => (leave(), job.onStarted?.()) };
    this.#queued.add(queued);
    try {
      return await inScope(shareOf(job), queued.signal, (scope) => this.#serve(begins, scope, queued));
    } catch (error) {
      // Preempted before any code ran.
      throw error instanceof Preempted ? new Crowded(1) : error;
    } finally {
      leave();
      this.#queued.delete(queued);
      if (this.#running + this.#queued.size === 0) this.#onIdle?.();
    }
  }

  stats(): PoolStats {
    return {
      level: this.#level,
      size: this.#options.size,
      children: this.#workers.size,
      busy: this.#running,
      queued: this.#queued.size,
      held: { runs: this.#runs.taken, places: this.#places.taken, ...this.#shares.taken },
      ...this.#counts,
    };
  }

  async close(drainMs = DRAIN_MS): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#sweeper);
    clearInterval(this.#childWatch);
    if (this.#running + this.#queued.size > 0 && drainMs > 0) await this.#untilIdle(drainMs);
    this.#isDrained = true;
    for (const queued of this.#queued) queued.abort(new PoolClosed());
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

  async #serve(job: RunJob, scope: Scope, queued: AbortController): Promise<RunOutcome> {
    const underWay = await scope.take(this.#runs);
    underWay.keep();
    const place = await scope.take(this.#places);
    // To start a child for it may take long, and computes nothing.
    place.keep("yields");
    const start = await scope.take(this.#starts);
    if (scope.over.aborted) throw scope.over.reason;
    this.#queued.delete(queued);
    this.#running++;
    let timer: NodeJS.Timeout | undefined;
    try {
      const warm = this.#takeWarm(affinityOf(job));
      if (warm === undefined) start.rest();
      const worker = warm ?? (await this.#takeFirstFree(job, scope));
      start.wake();
      timer = setTimeout(() => start.rest(), MAX_START_MS);
      const placed = { worker, account: job.account, underWay, place };
      return await this.#runOn(placed, job, scope, () => (start.rest(), place.rest()));
    } catch (error) {
      if (error instanceof RunCancelled || error instanceof PoolClosed || error instanceof Crowded) throw error;
      return this.#notStarted(error);
    } finally {
      clearTimeout(timer);
      this.#running--;
    }
  }

  /** Whether another run may use as much as its limit, beside what those use that have a child, or will have one. */
  #hasMemory(): boolean {
    const { limits, size } = this.#options;
    if (this.#running < size) return true;
    const withoutChild = this.#running - this.#sessions.size;
    const unmeasured = this.#sessions.size - this.#measured.runs + 1;
    const expectedMib = withoutChild * CHILD_MIB + unmeasured * (limits.heapMiB + CHILD_MIB);
    return this.#measured.bytes + expectedMib * MIB <= this.#memoryBytes;
  }

  /** No child could be started: the service's fault, and no code ran. */
  #notStarted(error: unknown): RunOutcome {
    this.#options.logger.error({ err: error }, "no sandbox child could be started");
    const message = "the sandbox could not be started";
    return { response: "null", logs: "", error: { code: "sandbox_crashed", message }, durationMs: 0, fault: "service" };
  }

  async #runOn(placed: Placed, job: RunJob, scope: Scope, onWaits: () => void): Promise<RunOutcome> {
    const { worker, underWay, place } = placed;
    const session = new RunSession(this.#nextRun++, job, worker, {
      fetcher: this.#options.fetcher,
      shares: this.#shares,
      modules: this.#modules,
      ...defined({ rpcUrls: this.#options.rpcUrls }),
      logger: this.#options.logger,
      onWaits,
      onServed: () => this.#expectNextOp(),
    });
    const onOver = (): void => void (scope.over.reason instanceof Preempted && session.preempt());
    this.#sessions.set(session, placed);
    this.#counts.runs++;
    try {
      // Before the child is the owner's: one that it has not used is left to the next.
      if (job.signal?.aborted || job.left?.aborted) throw new RunCancelled();
      if (scope.over.aborted) throw new Crowded(1);
      worker.countRun();
      worker.affinity = affinityOf(job);
      worker.account = job.account;
      job.onStarted?.();
      scope.over.addEventListener("abort", onOver, { once: true });
      for (const grant of [underWay, place]) grant.use();
      session.start();
      return await session.outcome;
    } finally {
      scope.over.removeEventListener("abort", onOver);
      this.#sessions.delete(session);
      this.#release(worker);
    }
  }

  /** Only while a core is free for it: with more runs it would take the time of their children. */
  #expectNextOp(): void {
    if (this.#running < availableParallelism()) this.#awake.stay();
  }

  /** A warm child of this owner. */
  #takeWarm(affinity: string): Worker | undefined {
    const warm = this.#idle.findLast((worker) => worker.affinity === affinity && worker.isAlive);
    if (warm !== undefined) this.#idle.splice(this.#idle.indexOf(warm), 1);
    return warm;
  }

  /**
   * On a busy machine a new child is ready long after one of the owner's other runs has ended. A cancelled run does not
   * wait for it.
   */
  #takeFirstFree(job: RunJob, scope: Scope): Promise<Worker> {
    return new Promise((resolve, reject) => {
      const childless = { affinity: affinityOf(job), take: resolve };
      this.#childless.add(childless);
      const isWanted = (): boolean => this.#childless.has(childless);
      const taken = (worker: Worker | undefined): void => {
        const isServed = !this.#childless.delete(childless);
        if (worker === undefined) return;
        if (isServed) return this.#release(worker);
        resolve(worker);
        this.#fillUnused();
      };
      const failed = (error: unknown): void => {
        this.#childless.delete(childless);
        reject(error as Error);
      };
      scope.over.addEventListener("abort", () => failed(scope.over.reason), { once: true });
      this.#takeUnused(shareOf(job), scope.over, isWanted).then(taken, failed);
    });
  }

  /** Nothing if it is not wanted any more. The turn lasts as long as the start, also when the run ends before. */
  #takeUnused(account: string, over: AbortSignal, isWanted: () => boolean): Promise<Worker | undefined> {
    return inScope(account, over, async (scope) => {
      await scope.take(this.#childStarts);
      return this.#nextUnused(isWanted);
    });
  }

  async #nextUnused(isWanted: () => boolean): Promise<Worker | undefined> {
    for (let failures = 0; isWanted();) {
      try {
        const worker = await (this.#unused.shift() ?? this.#startWorker());
        if (worker.isAlive) return worker;
        this.#fillUnused();
      } catch (error) {
        if (this.#isClosing) throw new PoolClosed();
        if (++failures >= START_ATTEMPTS) throw error;
      }
    }
    return undefined;
  }

  #release(worker: Worker): void {
    if (!worker.isAlive) return this.#fillUnused();
    const isUsedUp = this.#isUsedUp(worker);
    const next = isUsedUp ? undefined : [...this.#childless].find(({ affinity }) => affinity === worker.affinity);
    if (next !== undefined && this.#childless.delete(next)) return next.take(worker);
    if (this.#isClosing || isUsedUp) {
      worker.kill("recycled");
      return this.#fillUnused();
    }
    if (worker.affinity === undefined) return this.#keepUnused(worker);
    this.#idle.push(worker);
    this.#evictIdle(0);
  }

  /** For the next run, which else would have another one started; above the maximum it is ended. */
  #keepUnused(worker: Worker): void {
    const isTooMany = this.#unused.length >= UNUSED_CHILDREN && this.#workers.size > this.#maxChildren;
    if (isTooMany) worker.kill("more than needed");
    else this.#unused.unshift(Promise.resolve(worker));
  }

  #isUsedUp(worker: Worker): boolean {
    const isOld = worker.runs >= this.#recycle.runs || Date.now() - worker.bornAt >= this.#recycle.ageMs;
    return isOld || worker.residentBytes() > residentCapBytes(this.#options.limits.heapMiB) / 2;
  }

  /** Prepares unused children, so that a new owner does not wait for a fork. */
  #fillUnused(): void {
    if (this.#isClosing) return;
    const wanted = Math.min(UNUSED_CHILDREN, this.#options.size);
    while (this.#unused.length < wanted) {
      const unused = this.#startWorker();
      // A failed start rejects where the child is taken.
      unused.catch(() => undefined);
      this.#unused.push(unused);
    }
  }

  /** Ends idle children until `more` new ones fit; returns the children that are exiting. */
  #evictIdle(more: number): Worker[] {
    const exiting = [...this.#workers].filter((worker) => !worker.isAlive);
    for (let excess = this.#workers.size - exiting.length + more - this.#maxChildren; excess > 0; excess--) {
      const idle = this.#leastWanted();
      if (idle === undefined) break;
      this.#idle.splice(this.#idle.indexOf(idle), 1);
      idle.kill("evicted");
      exiting.push(idle);
    }
    return exiting;
  }

  /** Many accounts that each run something a few times do not push out the children of those who come all the time. */
  #leastWanted(): Worker | undefined {
    return this.#idle.reduce<Worker | undefined>(
      (least, worker) => (least === undefined || worker.lately() < least.lately() ? worker : least),
      undefined,
    );
  }

  #sweep(): void {
    this.#idle = this.#idle.filter((worker) => {
      if (worker.isAlive && !this.#isUsedUp(worker)) return true;
      worker.kill("recycled");
      return false;
    });
  }

  /** Looks at every child: what they use together, and which runs compute rather than wait. */
  #checkChildren(): void {
    const placed = [...this.#sessions];
    this.#measured = { bytes: 0, runs: placed.length };
    if (placed.length === 0) return;
    const idle = this.#idle.map((worker) => ({ of: worker, bytes: worker.unsharedBytes() }));
    const busy = placed.map(([of, { worker, account }]) => ({ of, account, bytes: worker.unsharedBytes() }));
    this.#measured.bytes = busy.reduce((sum, { bytes }) => sum + bytes, 0);
    const over = toEnd(idle, busy, this.#memoryBytes, this.#options.size);
    for (const worker of over.idle) worker.kill("memory is needed");
    this.#idle = this.#idle.filter((worker) => worker.isAlive);
    over.busy?.endForMemory();
    for (const [, { worker, place }] of placed) place[worker.isComputing() ? "wake" : "rest"]();
    this.#runs.serve();
  }

  async #startWorker(options: { withoutPermissionModel?: boolean } = {}): Promise<Worker> {
    while (this.#workers.size >= this.#maxChildren) {
      const exiting = this.#evictIdle(1);
      if (exiting.length === 0) break;
      // A killed child has its memory until it has exited.
      await Promise.race(exiting.map((worker) => worker.exited));
    }
    if (this.#isDrained) throw new PoolClosed();
    const uid = this.#freeUids.pop();
    if (uid === undefined) throw new Error("every user id of children is in use");
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

/** Of few children none is kept warm. */
const runsUnderWay = (children: number, places: number): number =>
  Math.max(places, Math.min(children, places * 2), Math.ceil(children * (1 - KEPT_WARM)));

const shareOf = ({ share, account }: RunJob): string => share ?? account;

/**
 * A child serves one account, key and CID only: code that survives a run through an engine flaw must not act with other
 * permissions.
 */
const affinityOf = ({ account, key, cid }: RunJob): string => `${account}\n${key}\n${cid}`;
