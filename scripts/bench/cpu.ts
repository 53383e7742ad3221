/** CPU time used by processes so far, in ms (Linux counts in hundredths of a second). */
import { readdirSync, readFileSync } from "node:fs";

const TICK_MS = 10;

export const cpuMs = (pid: number): number => fieldsOf(pid).reduce((sum, { ownTicks }) => sum + ownTicks, 0) * TICK_MS;

/** Of a process, all its live descendants, and those that were reaped. */
export function cpuMsOfFamily(pid: number): number {
  const all = readdirSync("/proc").map(Number).flatMap(fieldsOf);
  const ticksOf = (parent: number): number =>
    all
      .filter((fields) => fields.parent === parent)
      .reduce((sum, { id, ownTicks, endedTicks }) => sum + ownTicks + endedTicks + ticksOf(id), 0);
  const own = fieldsOf(pid).reduce((sum, { ownTicks, endedTicks }) => sum + ownTicks + endedTicks, 0);
  return (own + ticksOf(pid)) * TICK_MS;
}

interface Fields {
  readonly id: number;
  readonly parent: number;
  readonly ownTicks: number;
  readonly endedTicks: number;
}

/** Empty if the process has ended. */
function fieldsOf(pid: number): readonly Fields[] {
  if (!Number.isInteger(pid) || pid <= 0) return [];
  try {
    const fields = (readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1] ?? "").split(" ").map(Number);
    const at = (index: number): number => fields[index] ?? 0;
    return [{ id: pid, parent: at(1), ownTicks: at(11) + at(12), endedTicks: at(13) + at(14) }];
  } catch {
    return [];
  }
}
