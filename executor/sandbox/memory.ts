/**
 * Limits the memory of all children together. Each has its own limit, but their sum exceeds the machine: one child may
 * use several times its share while the others are small. So the sum is kept below what the container allows.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { totalmem } from "node:os";
import { MIB } from "../../protocol/limits";

const PAGE_BYTES = 4_096;
/** The rest is for keyholder, fetcher and all other processes of the machine or container. */
const SHARE_OF_CHILDREN = 0.5;
/** What a child needs besides its guest's heap, and all that an idle child needs. */
export const CHILD_MIB = 100;
const MAX_SLOTS = 32;
/** Warm children per slot where memory allows, so that accounts that return often do not wait for a fork. */
const WARM_PER_SLOT = 6;

/** The container's memory limit (cgroup v1 or v2), or the machine's memory. */
export function memoryLimitBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

export const memoryOfChildren = (limitBytes = memoryLimitBytes()): number => Math.floor(limitBytes * SHARE_OF_CHILDREN);

/** Runs that compute at once: as many as fit with their whole heap, limited by the number of cores. */
export function slotsFor(memoryBytes: number, heapMiB: number, cores: number): number {
  const fitting = Math.floor(memoryBytes / ((heapMiB + CHILD_MIB) * MIB));
  return Math.max(2, Math.min(fitting, cores * 4, MAX_SLOTS));
}

/** Total number of children, including idle ones. */
export function childrenFor(memoryBytes: number, slots: number): number {
  return Math.max(slots + 2, Math.min(Math.floor(memoryBytes / (CHILD_MIB * MIB)), WARM_PER_SLOT * slots));
}

/** In bytes. */
export interface MemoryUse {
  readonly resident: number;
  /** What it shares with no other process. */
  readonly unshared: number;
  /** Reserved for data, resident or not. */
  readonly data: number;
}

/** Fields of `/proc/pid/stat`, counted from the one after the state. */
const USER_TICKS = 10;
const SYSTEM_TICKS = 11;
/** Of 10 ms each, between two calls. */
const BUSY_TICKS = 2;

/** Of the thread that runs the guest, since it began, in milliseconds. */
export interface Scheduled {
  readonly ranMs: number;
  /** It would have run if it had had a core. */
  readonly waitedMs: number;
}

const NANOSECONDS_PER_MS = 1e6;
const NOTHING: MemoryUse = { resident: 0, unshared: 0, data: 0 };

/** A file of the kernel about a process. Stays open: it is read often, and opening it costs most. */
class ProcessFile {
  #file: number | undefined;
  readonly #text = Buffer.alloc(512);

  constructor(pid: number | undefined, name: string) {
    try {
      this.#file = openSync(`/proc/${pid}/${name}`, "r");
    } catch {
      // It has ended already.
    }
  }

  /** Empty when the process has ended. */
  read(): string {
    if (this.#file === undefined) return "";
    try {
      return this.#text.toString("latin1", 0, readSync(this.#file, this.#text, 0, this.#text.length, 0));
    } catch {
      return "";
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

/** What the kernel says of a process's memory and work. */
export class ProcessUse {
  readonly #statm: ProcessFile;
  readonly #stat: ProcessFile;
  readonly #schedstat: ProcessFile;
  #ticks = 0;
  #scheduled: Scheduled = { ranMs: 0, waitedMs: 0 };

  constructor(pid: number | undefined) {
    this.#statm = new ProcessFile(pid, "statm");
    this.#stat = new ProcessFile(pid, "stat");
    this.#schedstat = new ProcessFile(pid, "schedstat");
  }

  /** All 0 when the process has ended. */
  memory(): MemoryUse {
    const text = this.#statm.read();
    if (text === "") return NOTHING;
    const [, resident = 0, shared = 0, , , data = 0] = text.split(" ").map(Number);
    return { resident: resident * PAGE_BYTES, unshared: (resident - shared) * PAGE_BYTES, data: data * PAGE_BYTES };
  }

  /**
   * Whether it computes or would if it had a core: not while it sleeps or waits for an answer. Also when a thread of it
   * has computed since the last call.
   */
  isComputing(): boolean {
    // The second field is the program's name in parentheses, which may contain spaces.
    const [state, ...fields] = this.#stat.read().split(") ").at(-1)?.split(" ") ?? [];
    const ticks = Number(fields[USER_TICKS] ?? 0) + Number(fields[SYSTEM_TICKS] ?? 0);
    const since = ticks - this.#ticks;
    this.#ticks = ticks;
    return state === "R" || since >= BUSY_TICKS;
  }

  /** As last known, when the process has ended. */
  scheduled(): Scheduled {
    const text = this.#schedstat.read();
    if (text === "") return this.#scheduled;
    const [ranMs = 0, waitedMs = 0] = text.split(" ").map((nanoseconds) => Number(nanoseconds) / NANOSECONDS_PER_MS);
    return (this.#scheduled = { ranMs, waitedMs });
  }

  close(): void {
    this.#statm.close();
    this.#stat.close();
    this.#schedstat.close();
  }
}

export interface Kept<T> {
  readonly of: T;
  readonly bytes: number;
}

export interface KeptRun<T> extends Kept<T> {
  readonly account: string;
}

/**
 * What to end so that the rest fits: idle children, longest idle first, then a run. The largest one if it has more than
 * an equal share of a run, else the largest one of the account whose runs have most together.
 */
export function toEnd<I, B>(
  idle: readonly Kept<I>[],
  busy: readonly KeptRun<B>[],
  budgetBytes: number,
  slots: number,
): { idle: I[]; busy: B | undefined } {
  let excess = [...idle, ...busy].reduce((sum, { bytes }) => sum + bytes, 0) - budgetBytes;
  const ended: I[] = [];
  for (const { of, bytes } of idle) {
    if (excess <= 0) break;
    ended.push(of);
    excess -= bytes;
  }
  if (excess <= 0) return { idle: ended, busy: undefined };
  const largest = [...busy].sort((a, b) => b.bytes - a.bytes);
  const [first] = largest;
  if (first === undefined || first.bytes > budgetBytes / slots) return { idle: ended, busy: first?.of };
  const most = accountWithMost(busy);
  return { idle: ended, busy: largest.find(({ account }) => account === most)?.of };
}

function accountWithMost(busy: readonly KeptRun<unknown>[]): string | undefined {
  const sums = new Map<string, number>();
  for (const { account, bytes } of busy) sums.set(account, (sums.get(account) ?? 0) + bytes);
  return [...sums].sort(([, a], [, b]) => b - a)[0]?.[0];
}
