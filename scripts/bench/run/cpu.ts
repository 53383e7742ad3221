/** CPU time of a hello in each process of a stack, for one caller and for many. */
import { family } from "../processes";
import { measureThroughput, type Bed } from "./http";

export const PARTS = ["relayer", "keyholder", "sandbox", "chain", "load"] as const;
type Part = (typeof PARTS)[number];

export interface CpuRow {
  readonly callers: number;
  /** Milliseconds of CPU per run. */
  readonly cpuMs: Readonly<Record<Part, number>>;
}

const MEASURED_MS = 3_000;

export async function measureCpu(bed: Bed): Promise<CpuRow[]> {
  const rows: CpuRow[] = [];
  for (const callers of [1, 8]) {
    const before = cpuNow();
    const { latencies } = await measureThroughput(bed, callers, false, MEASURED_MS);
    const [after, runs] = [cpuNow(), latencies.length + callers];
    const cpuMs = { relayer: 0, keyholder: 0, sandbox: 0, chain: 0, load: 0 };
    // CPU time of processes that ended meanwhile is unknown and left out.
    for (const [pid, { part, ms }] of after) cpuMs[part] += (ms - (before.get(pid)?.ms ?? 0)) / runs;
    rows.push({ callers, cpuMs });
  }
  return rows;
}

/** CPU time so far of this process and of those it has started. */
function cpuNow(): ReadonlyMap<number, { readonly part: Part; readonly ms: number }> {
  const all = family(process.pid);
  const parts = new Map<number, Part>([[process.pid, "load"]]);
  // Parents come before their children.
  for (const { pid, parent, command } of all) {
    const part = ["keyholder", "sandbox"].includes(parts.get(parent) ?? "") ? "sandbox" : partOf(command.join(" "));
    if (part !== undefined && pid !== process.pid) parts.set(pid, part);
  }
  return new Map(
    all.flatMap(({ pid, cpuMs: ms }) => {
      const part = parts.get(pid);
      return part === undefined ? [] : [[pid, { part, ms }] as const];
    }),
  );
}

function partOf(command: string): Part | undefined {
  if (command.includes("relayer/main.js")) return "relayer";
  if (command.includes("executor/main.js")) return "keyholder";
  return command.includes("anvil") ? "chain" : undefined;
}
