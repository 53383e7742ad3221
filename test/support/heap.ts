/**
 * Heap snapshots of a running Node process, counted by class. The process was started with `heapOptions` in
 * NODE_OPTIONS.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const heapOptions = (folder: string): string => `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}`;

interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[], ...unknown[]] } };
  nodes: number[];
  strings: string[];
}

/** Of the last of its strings, and within none. */
const SNAPSHOT_END = /[^\\]"\]\}$/;
const END_BYTES = 4;
const snapshotsIn = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith(".heapsnapshot"));

/**
 * Counts the process's retained objects and closures by name. Taken twice: objects finalised by the first collection
 * are gone by the second.
 */
export async function heapByClass(pid: number, folder: string): Promise<Map<string, number>> {
  rmSync(await snapshotOf(pid, folder));
  await sleep(500);
  return countsIn(await snapshotOf(pid, folder));
}

/** Plain objects and arrays: filling caches and late compilation make dozens of them, independent of repetitions. */
const PLAIN: ReadonlySet<string> = new Set(["object Object", "object Array"]);
const PLAIN_NOISE = 100;

/** Classes that retain nearly one more instance per repetition. */
export function grownClasses(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  times: number,
): { name: string; by: number }[] {
  const grown = [...after].map(([name, left]) => ({ name, by: left - (before.get(name) ?? 0) }));
  return grown.filter(({ name, by }) => by >= times * 0.7 + (PLAIN.has(name) ? PLAIN_NOISE : 0));
}

/**
 * Classes that grow each time `repeat` does its work `times` times, in up to five rounds: a leak grows in all of
 * them, caches and late finalisers do not.
 */
export async function leakedClasses(
  { pid, folder }: { readonly pid: number; readonly folder: string },
  repeat: () => Promise<void>,
  times: number,
): Promise<{ name: string; by: number }[]> {
  let suspects: { name: string; by: number }[] | undefined;
  let before = await heapByClass(pid, folder);
  for (let look = 0; look < 5 && suspects?.length !== 0; look++) {
    await repeat();
    const after = await heapByClass(pid, folder);
    const grown = grownClasses(before, after, times);
    suspects = (suspects ?? grown).filter(({ name }) => grown.some((one) => one.name === name));
    before = after;
  }
  return suspects ?? [];
}

/** Its file, once it is complete. */
async function snapshotOf(pid: number, folder: string): Promise<string> {
  process.kill(pid, "SIGUSR2");
  for (let waits = 0; waits < 300; waits++) {
    await sleep(100);
    const [file] = snapshotsIn(folder).map((name) => join(folder, name));
    if (file !== undefined && isComplete(file)) return file;
  }
  throw new Error(`process ${pid} wrote no heap snapshot`);
}

/** A snapshot ends with its strings; to parse it again and again while it is written takes seconds. */
function isComplete(file: string): boolean {
  const { size } = statSync(file);
  if (size < END_BYTES) return false;
  const end = Buffer.alloc(END_BYTES);
  const opened = openSync(file, "r");
  readSync(opened, end, 0, END_BYTES, size - END_BYTES);
  closeSync(opened);
  return SNAPSHOT_END.test(end.toString("latin1"));
}

function countsIn(file: string): Map<string, number> {
  const parsed = JSON.parse(readFileSync(file, "utf8")) as Snapshot;
  rmSync(file);
  const { node_fields: fields, node_types: types } = parsed.snapshot.meta;
  const [typeAt, nameAt] = [fields.indexOf("type"), fields.indexOf("name")];
  const counts = new Map<string, number>();
  for (let at = 0; at < parsed.nodes.length; at += fields.length) {
    const type = types[0][parsed.nodes[at + typeAt] ?? 0];
    if (type !== "object" && type !== "closure") continue;
    const name = `${type} ${parsed.strings[parsed.nodes[at + nameAt] ?? 0]}`;
    // WeakRefs retain nothing, and their number varies by hundreds with the timing of finalisers.
    if (name === "object WeakRef") continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
