/** How a child is started, and what it may use of the machine's memory. */
import { readdirSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { dirname } from "node:path";
import { built } from "../built";
import { startConfined, type Confined } from "../walls/confine";

/** First of the user ids children run under, one each, so that one taken over cannot touch the next. */
export const DEFAULT_FIRST_UID = 61_200;

const CHILD_SCRIPT = built("sandbox/child.js");
const ISOLATED_VM = dirname(require.resolve("isolated-vm/package.json"));
/** What finds the binary of isolated-vm. */
const NODE_GYP_BUILD = dirname(require.resolve("node-gyp-build/package.json", { paths: [ISOLATED_VM] }));
const READS = [dirname(CHILD_SCRIPT), ISOLATED_VM, NODE_GYP_BUILD];

/** Node's own fence behind the kernel's. */
const FENCED_READS = [...READS.map((path) => `${path}/*`), "/etc/alpine-release"].map((path) => `--allow-fs-read=${path}`);
const FENCE = ["--permission", "--allow-addons", ...FENCED_READS, "--disable-warning=SecurityWarning"];
const NODE_OPTIONS = ["--no-node-snapshot", "--disallow-code-generation-from-strings", "--max-old-space-size=256"];
const NICENESS = 5;
/** When memory runs out the kernel ends children before it thinks of anybody else. */
const OUT_OF_MEMORY_SCORE = "1000";
const MIB = 2 ** 20;

export interface LaunchOptions {
  heapMiB: number;
  uid: number;
  /** Without Node's permission model: so that a self-test meets the kernel's walls. */
  unfenced?: boolean;
}

/** What a child may keep resident: its heap three times over (collections copy) on top of its own need. Above it the keyholder ends it. */
export const residentCapBytes = (heapMiB: number): number => (heapMiB * 3 + 256) * MIB;
/** Above this the kernel gives it no more: for what grows faster than the keyholder looks. V8's code ranges, 512 MiB for each isolate, count. */
export const dataCapBytes = (heapMiB: number): number => residentCapBytes(heapMiB) + 1_664 * MIB;

/** Starts a child; descriptor 3 is its channel, descriptor 2 what its engine says when it dies. */
export function launchChild({ heapMiB, uid, unfenced = false }: LaunchOptions): Confined {
  const args = [...(unfenced ? [] : FENCE), ...NODE_OPTIONS, CHILD_SCRIPT, String(heapMiB), String(uid)];
  return startConfined(args, { filter: "child", withoutNetwork: true, reads: READS, dataBytes: dataCapBytes(heapMiB) });
}

/** A child comes after everything else, for the processor and for memory: guests' loops must not slow the processes that serve everybody. */
export function putLast(pid: number | undefined): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, OUT_OF_MEMORY_SCORE);
    // Each thread has its own.
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), NICENESS);
  } catch {
    // It has ended already, and its exit tells more; or this is not Linux, which the self-test says.
  }
}
