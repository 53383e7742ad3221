/** CPU time of every process of a stack, from Linux's /proc, to attribute a run's cost. */
import { readFileSync, readdirSync } from "node:fs";

export const PARTS = ["relayer", "keyholder", "sandbox", "chain", "load"] as const;
export type Part = (typeof PARTS)[number];
/** Milliseconds. */
export type CpuTimes = Record<Part, number>;
/** CPU time of each process so far, by its id. */
export type CpuUse = ReadonlyMap<number, { readonly part: Part; readonly cpuMs: number }>;

const TICK_MS = 10;

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly cpuMs: number;
}

/** CPU time so far of the processes descending from `root` (excluding `root`), and of this process. */
export function cpuOf(root: number): CpuUse {
  const use = new Map([[process.pid, { part: "load" as Part, cpuMs: ownCpuMs() }]]);
  const all = processes();
  const add = (parent: number, inKeyholder: boolean): void => {
    for (const one of all.filter((other) => other.parent === parent && !isStackOfItsOwn(other))) {
      const part = inKeyholder ? "sandbox" : partOf(one);
      if (part !== undefined) use.set(one.pid, { part, cpuMs: one.cpuMs });
      add(one.pid, inKeyholder || part === "keyholder");
    }
  };
  add(root, false);
  return use;
}

/** CPU time of processes that ended meanwhile is unknown and left out. */
export function perRun(before: CpuUse, after: CpuUse, runs: number): CpuTimes {
  const times: CpuTimes = { relayer: 0, keyholder: 0, sandbox: 0, chain: 0, load: 0 };
  for (const [pid, { part, cpuMs }] of after) times[part] += (cpuMs - (before.get(pid)?.cpuMs ?? 0)) / runs;
  return times;
}

/** A baseline's stack is also a descendant of this process. */
const isStackOfItsOwn = ({ command }: Process): boolean => command.includes("scripts/dev.js");

function partOf({ command }: Process): Part | undefined {
  if (command.includes("relayer/main.js")) return "relayer";
  if (command.includes("executor/main.js")) return "keyholder";
  return command.includes("anvil") ? "chain" : undefined;
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function processes(): Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
        return [
          {
            pid: Number(name),
            parent: Number(fields[1]),
            command,
            cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
          },
        ];
      } catch {
        // The process has ended.
        return [];
      }
    });
}
