/** Starts children, with their memory limits. */
import { dirname } from "node:path";
import { built } from "../built";
import { GUEST_PRIORITY } from "../confinement/priority";
import type { Starter, StartedProcess } from "../confinement/starter";
import { MIB } from "../../protocol/limits";

/** First of the children's user ids. Each child has its own, so that a compromised one cannot touch another. */
export const DEFAULT_FIRST_UID = 61_200;

const CHILD_SCRIPT = built("sandbox/child.js");
const ISOLATED_VM = dirname(require.resolve("isolated-vm/package.json"));
/** Locates the binary of isolated-vm. */
const NODE_GYP_BUILD = dirname(require.resolve("node-gyp-build/package.json", { paths: [ISOLATED_VM] }));
const READS = [dirname(CHILD_SCRIPT), ISOLATED_VM, NODE_GYP_BUILD];

/** Node's permission model, in addition to the kernel's restrictions. */
const ALLOWED_READS = [...READS.map((path) => `${path}/*`), "/etc/alpine-release"].map(
  (path) => `--allow-fs-read=${path}`,
);
const PERMISSION_MODEL = ["--permission", "--allow-addons", ...ALLOWED_READS, "--disable-warning=SecurityWarning"];
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

export interface LaunchOptions {
  heapMiB: number;
  uid: number;
  /** Without Node's permission model, so that a self-test reaches the kernel's restrictions. */
  withoutPermissionModel?: boolean;
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

/** Starts a child; descriptor 3 is its channel, `onStderr` gets the engine's output when it crashes. */
export function launchChild(
  starter: Starter,
  { heapMiB, uid, withoutPermissionModel = false }: LaunchOptions,
  onStderr: (text: string) => void,
): StartedProcess {
  const args = [
    ...(withoutPermissionModel ? [] : PERMISSION_MODEL),
    ...NODE_OPTIONS,
    CHILD_SCRIPT,
    String(heapMiB),
    String(uid),
  ];
  const dataBytes = dataCapBytes(heapMiB);
  return starter.start(
    args,
    { filter: "child", withoutNetwork: true, reads: READS, dataBytes, priority: GUEST_PRIORITY },
    onStderr,
  );
}
