/** Starts children, with their memory limits. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { dirname } from "node:path";
import { built } from "../built";
import { startConfined, type Confined } from "../walls/confine";

/** First of the children's user ids. Each child has its own, so that a compromised one cannot touch another. */
export const DEFAULT_FIRST_UID = 61_200;

const CHILD_SCRIPT = built("sandbox/child.js");
const ISOLATED_VM = dirname(require.resolve("isolated-vm/package.json"));
/** Locates the binary of isolated-vm. */
const NODE_GYP_BUILD = dirname(require.resolve("node-gyp-build/package.json", { paths: [ISOLATED_VM] }));
const READS = [dirname(CHILD_SCRIPT), ISOLATED_VM, NODE_GYP_BUILD];

/** Node's permission model, in addition to the kernel's restrictions. */
const FENCED_READS = [...READS.map((path) => `${path}/*`), "/etc/alpine-release"].map(
  (path) => `--allow-fs-read=${path}`,
);
const FENCE = ["--permission", "--allow-addons", ...FENCED_READS, "--disable-warning=SecurityWarning"];
/**
 * An isolate lives for milliseconds: compiling its functions to baseline code, or before they are called, takes longer
 * than it saves. Long computations are optimised as usual.
 */
const SHORT_LIVES = ["--no-sparkplug", "--max-lazy"];
const NODE_OPTIONS = [
  "--no-node-snapshot",
  "--disallow-code-generation-from-strings",
  "--max-old-space-size=256",
  ...SHORT_LIVES,
];
const NICENESS = 10;
/** When memory runs out the kernel ends children before all other processes. */
const OUT_OF_MEMORY_SCORE = "1000";
const MIB = 2 ** 20;

export interface LaunchOptions {
  heapMiB: number;
  uid: number;
  /** Without Node's permission model, so that a self-test reaches the kernel's restrictions. */
  unfenced?: boolean;
}

/**
 * Maximum resident memory of a child: three times its heap (garbage collection copies) plus its own need. The keyholder
 * ends a child above it.
 */
export const residentCapBytes = (heapMiB: number): number => (heapMiB * 3 + 256) * MIB;
/**
 * Hard limit by the kernel, for growth faster than the keyholder checks. Includes V8's code ranges of 512 MiB per
 * isolate.
 */
export const dataCapBytes = (heapMiB: number): number => residentCapBytes(heapMiB) + 1_664 * MIB;

/** Starts a child; descriptor 3 is its channel, descriptor 2 the engine's output when it crashes. */
export function launchChild({ heapMiB, uid, unfenced = false }: LaunchOptions): Confined {
  const args = [...(unfenced ? [] : FENCE), ...NODE_OPTIONS, CHILD_SCRIPT, String(heapMiB), String(uid)];
  return startConfined(args, { filter: "child", withoutNetwork: true, reads: READS, dataBytes: dataCapBytes(heapMiB) });
}

/**
 * Gives a child the lowest priority for CPU and memory, so that loops of guests do not slow the processes that serve
 * all.
 */
export function putLast(pid: number | undefined): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, OUT_OF_MEMORY_SCORE);
    // Linux has one niceness per thread.
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), NICENESS);
    putSessionLast(pid);
  } catch {
    // It has ended already, and its exit tells more; or this is not Linux, which the self-test says.
  }
}

/**
 * A child is a session of its own. Where the kernel groups processes by session, their niceness counts only inside the
 * group, and each group gets as much CPU as the keyholder's unless the group is nice itself.
 */
function putSessionLast(pid: number | undefined): void {
  const group = `/proc/${pid}/autogroup`;
  if (existsSync(group)) writeFileSync(group, String(NICENESS));
}
