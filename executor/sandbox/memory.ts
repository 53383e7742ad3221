/**
 * Limits the memory of all children together. Each has its own limit, but their sum exceeds the machine: one child may
 * use several times its share while the others are small. So the sum is kept below what the container allows.
 */
import { readFileSync } from "node:fs";
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

/** Memory of a process that is not shared with others, in bytes; 0 if unreadable. */
export function privateBytes(pid: number | undefined): number {
  try {
    const [, resident = 0, shared = 0] = readFileSync(`/proc/${pid}/statm`, "latin1").split(" ").map(Number);
    return (resident - shared) * PAGE_BYTES;
  } catch {
    return 0;
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
