/** Processes as Linux's /proc shows them: which descend from which, their CPU time and their memory. */
import { readFileSync, readdirSync } from "node:fs";
import { KIB, MIB } from "../../protocol/limits";

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;
const PAGE_BYTES = 4 * KIB;

export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly cpuMs: number;
  /** CPU time of its children that have ended. */
  readonly endedCpuMs: number;
}

export const processes = (): readonly Process[] => readdirSync("/proc").map(Number).flatMap(processOf);

/** A process and all its live descendants. */
function family(root: number, all = processes()): readonly Process[] {
  const below = (parent: number): readonly Process[] =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  return [...all.filter(({ pid }) => pid === root), ...below(root)];
}

/** CPU time used so far. */
export const cpuMs = (pid: number): number => processOf(pid)[0]?.cpuMs ?? 0;

/** Of a process, all its live descendants, and those that were reaped. */
export const cpuMsOfFamily = (pid: number): number =>
  family(pid).reduce((sum, one) => sum + one.cpuMs + one.endedCpuMs, 0);

/** Memory of a process and all its descendants, as a container's limit counts it: shared pages count once. */
export const memoryMiB = (root: number): number =>
  Math.round((family(root).reduce((sum, { pid }) => sum + proportionalKib(pid), 0) * KIB) / MIB);

export const residentMiB = (pid: number): number =>
  Math.round(((Number(read(pid, "statm").split(" ")[1]) || 0) * PAGE_BYTES * 10) / MIB) / 10;

/** Descendants that run this file in Node itself, not the wrapper it was started through. */
export const programsBelow = (root: number, file: string): readonly number[] =>
  family(root)
    .filter((one) => isProgram(one, file))
    .map(({ pid }) => pid);

export const isRunning = (pid: number, file: string): boolean => processOf(pid).some((one) => isProgram(one, file));

const isProgram = ({ command: [program = "", ...args] }: Process, file: string): boolean =>
  program.endsWith("/node") && args.some((arg) => arg.endsWith(file));

const proportionalKib = (pid: number): number => Number(/^Pss:\s+(\d+)/m.exec(read(pid, "smaps_rollup"))?.[1] ?? 0);

/** Empty if the process has ended. */
function processOf(pid: number): readonly Process[] {
  if (!Number.isInteger(pid) || pid <= 0) return [];
  const stat = read(pid, "stat");
  if (stat === "") return [];
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = (...indices: number[]): number => indices.reduce((sum, index) => sum + Number(fields[index]), 0);
  return [
    {
      pid,
      parent: Number(fields[1]),
      command: read(pid, "cmdline").split("\0"),
      cpuMs: ticks(11, 12) * TICK_MS,
      endedCpuMs: ticks(13, 14) * TICK_MS,
    },
  ];
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

/** The most that processes had while it watched. */
export class MemoryWatch<Name extends string> {
  readonly most: Record<Name, number>;
  readonly #roots: Readonly<Record<Name, () => number>>;
  readonly #timer: NodeJS.Timeout;

  constructor(roots: Readonly<Record<Name, () => number>>, everyMs = 500) {
    this.#roots = roots;
    this.most = this.now();
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  now(): Record<Name, number> {
    const named = Object.entries(this.#roots) as [Name, () => number][];
    return Object.fromEntries(named.map(([name, root]) => [name, memoryMiB(root())])) as Record<Name, number>;
  }

  stop(): Record<Name, number> {
    clearInterval(this.#timer);
    this.#look();
    return this.most;
  }

  #look(): void {
    for (const [name, mib] of Object.entries(this.now()) as [Name, number][])
      this.most[name] = Math.max(this.most[name], mib);
  }
}
