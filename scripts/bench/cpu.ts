/** CPU time used by processes so far, in ms (Linux counts in hundredths of a second). */
import { readdirSync, readFileSync } from "node:fs";

const TICK_MS = 10;

export const cpuMs = (pid: number): number => (fieldsOf(pid)?.ownTicks ?? 0) * TICK_MS;

/** Of a process, its live children, and its reaped ones. */
export function cpuMsOfFamily(pid: number): number {
  const own = fieldsOf(pid);
  const children = readdirSync("/proc")
    .map(Number)
    .map(fieldsOf)
    .filter((fields) => fields?.parent === pid);
  const ticks = [own, ...children].reduce(
    (sum, fields) => sum + (fields?.ownTicks ?? 0) + (fields?.endedTicks ?? 0),
    0,
  );
  return ticks * TICK_MS;
}

interface Fields {
  readonly parent: number;
  readonly ownTicks: number;
  readonly endedTicks: number;
}

function fieldsOf(pid: number): Fields | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  try {
    const fields = (readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1] ?? "").split(" ").map(Number);
    const at = (index: number): number => fields[index] ?? 0;
    return { parent: at(1), ownTicks: at(11) + at(12), endedTicks: at(13) + at(14) };
  } catch {
    // The process has ended.
    return undefined;
  }
}
