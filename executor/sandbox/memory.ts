/**
 * Limits the memory of all children together. Each has its own limit, but their sum exceeds the machine: one child may
 * use several times its share while the others are small. So the sum is kept below what the container allows.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { totalmem } from "node:os";

const MIB = 2 ** 20;
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

/** Concurrent runs: as many as fit with their whole heap, limited by the number of cores. */
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

const NOTHING: MemoryUse = { resident: 0, unshared: 0, data: 0 };

/** What the kernel says of a process's memory. Keeps the file open: a run reads it, and opening it costs most. */
export class ProcessMemory {
  #file: number | undefined;
  readonly #text = Buffer.alloc(256);

  constructor(pid: number | undefined) {
    try {
      this.#file = openSync(`/proc/${pid}/statm`, "r");
    } catch {
      // It has ended already.
    }
  }

  /** All 0 when the process has ended. */
  read(): MemoryUse {
    if (this.#file === undefined) return NOTHING;
    try {
      const length = readSync(this.#file, this.#text, 0, this.#text.length, 0);
      const [, resident = 0, shared = 0, , , data = 0] = this.#text
        .toString("latin1", 0, length)
        .split(" ")
        .map(Number);
      return { resident: resident * PAGE_BYTES, unshared: (resident - shared) * PAGE_BYTES, data: data * PAGE_BYTES };
    } catch {
      return NOTHING;
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

export interface Kept<T> {
  readonly of: T;
  readonly bytes: number;
}

/**
 * What to end so that the rest fits: idle children, longest idle first, then the run that uses most, if that is more
 * than an equal share. A run within its share is never ended because of others.
 */
export function toEnd<I, B>(
  idle: readonly Kept<I>[],
  busy: readonly Kept<B>[],
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
  const [first] = [...busy].sort((a, b) => b.bytes - a.bytes);
  return {
    idle: ended,
    busy: excess > 0 && first !== undefined && first.bytes > budgetBytes / slots ? first.of : undefined,
  };
}
