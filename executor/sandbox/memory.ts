/**
 * The memory of all children together. Each has its own wall, but the walls of all add up to more than a machine has: a child may use several times its share
 * while the others are small. So the sum is looked at, too, and kept below what the container allows.
 */
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";

const MIB = 2 ** 20;
const PAGE_BYTES = 4_096;
/** The rest is for keyholder, fetcher, and whatever else runs on the machine or in the container. */
const SHARE_OF_CHILDREN = 0.5;
/** What a child needs beside its guest's heap, and all an idle one has. */
export const CHILD_MIB = 100;
const MAX_SLOTS = 32;
/** Children kept warm for each slot where memory allows, so that accounts that come back often do not wait for a fork. */
const WARM_PER_SLOT = 6;

/** What the container allows, or the machine has. A limit of this process's cgroup counts, of either version. */
export function memoryLimitBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

export const memoryOfChildren = (limitBytes = memoryLimitBytes()): number => Math.floor(limitBytes * SHARE_OF_CHILDREN);

/** Runs at once: as many as have room for their whole heap, and no more than the cores can serve. */
export function slotsFor(memoryBytes: number, heapMiB: number, cores: number): number {
  const fitting = Math.floor(memoryBytes / ((heapMiB + CHILD_MIB) * MIB));
  return Math.max(2, Math.min(fitting, cores * 4, MAX_SLOTS));
}

/** Children altogether, idle ones included. */
export function childrenFor(memoryBytes: number, slots: number): number {
  return Math.max(slots + 2, Math.min(Math.floor(memoryBytes / (CHILD_MIB * MIB)), WARM_PER_SLOT * slots));
}

/** What a process keeps that is not shared with others, in bytes; 0 where it cannot be read. */
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
 * What has to end so that the rest fits: idle children, longest idle first, then the one run that has most, if it has more than an equal share. Whoever keeps
 * within his share is never ended for what others use.
 */
export function toEnd<I, B>(idle: readonly Kept<I>[], busy: readonly Kept<B>[], budgetBytes: number, slots: number): { idle: I[]; busy: B | undefined } {
  let excess = [...idle, ...busy].reduce((sum, { bytes }) => sum + bytes, 0) - budgetBytes;
  const ended: I[] = [];
  for (const { of, bytes } of idle) {
    if (excess <= 0) break;
    ended.push(of);
    excess -= bytes;
  }
  const [first] = [...busy].sort((a, b) => b.bytes - a.bytes);
  return { idle: ended, busy: excess > 0 && first !== undefined && first.bytes > budgetBytes / slots ? first.of : undefined };
}
