/** Memory of a process and all it started, as the container's limit counts it. */
import { readdirSync, readFileSync } from "node:fs";

const KIB = 1_024;
const MIB = 2 ** 20;

/** Pages that processes share count once, by their proportional share. */
export function memoryMiB(root: number): number {
  const children = childrenByParent();
  const kilobytes = (pid: number): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + kilobytes(child), proportionalKilobytes(pid));
  return Math.round((kilobytes(root) * KIB) / MIB);
}

function childrenByParent(): ReadonlyMap<number, number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    const parent = Number(read(`/proc/${name}/stat`).split(") ").at(-1)?.split(" ")[1]);
    if (Number.isInteger(parent)) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  return children;
}

const proportionalKilobytes = (pid: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);

/** Empty when the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
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
