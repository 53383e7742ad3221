/** Heap snapshots of a running Node process, counted by class. The process was started with `heapOptions` in NODE_OPTIONS. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const heapOptions = (folder: string): string => `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}`;

interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[], ...unknown[]] } };
  nodes: number[];
  strings: string[];
}

const snapshotsIn = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith(".heapsnapshot"));

/** How many objects and closures of each name the process keeps. Taken twice: what the first collection finalised is gone by the second. */
export async function heapByClass(pid: number, folder: string): Promise<Map<string, number>> {
  await snapshotOf(pid, folder);
  await sleep(500);
  return snapshotOf(pid, folder);
}

async function snapshotOf(pid: number, folder: string): Promise<Map<string, number>> {
  process.kill(pid, "SIGUSR2");
  for (let waits = 0; waits < 300; waits++) {
    await sleep(100);
    const counts = snapshotsIn(folder).map((name) => countsIn(join(folder, name)))[0];
    if (counts) return counts;
  }
  throw new Error(`process ${pid} wrote no heap snapshot`);
}

/** Undefined while the file is still being written. */
function countsIn(file: string): Map<string, number> | undefined {
  let parsed: Snapshot;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8")) as Snapshot;
  } catch {
    return undefined;
  }
  rmSync(file);
  const { node_fields: fields, node_types: types } = parsed.snapshot.meta;
  const [typeAt, nameAt] = [fields.indexOf("type"), fields.indexOf("name")];
  const counts = new Map<string, number>();
  for (let at = 0; at < parsed.nodes.length; at += fields.length) {
    const type = types[0][parsed.nodes[at + typeAt] ?? 0];
    if (type !== "object" && type !== "closure") continue;
    const name = `${type} ${parsed.strings[parsed.nodes[at + nameAt] ?? 0]}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
