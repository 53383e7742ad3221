/** How a child is started: as little of the machine in reach as this machine allows. What was reached is found out by the child's self-test, not assumed here. */
import { spawn, type ChildProcess } from "node:child_process";
import { setPriority } from "node:os";
import { built } from "../built";
import { confine, confineMemory } from "../confine";

/** First of the user ids children run under, one each, so that one taken over cannot touch the next. */
export const DEFAULT_FIRST_UID = 61_200;

const CHILD_SCRIPT = built("sandbox/child.js");
const NICENESS = 5;
const MIB = 2 ** 20;

export interface LaunchOptions {
  heapMiB: number;
  uid: number;
}

/** What a child may keep resident: its heap three times over (collections copy) on top of its own need. Above it the keyholder ends it. */
export const residentCapBytes = (heapMiB: number): number => (heapMiB * 3 + 256) * MIB;
/** Above this the kernel gives it no more: for what grows faster than the keyholder looks. */
const dataCapBytes = (heapMiB: number): number => residentCapBytes(heapMiB) + 1_664 * MIB;

/** Starts a child; descriptor 3 is its channel, descriptor 2 what its engine says when it dies. */
export function launchChild({ heapMiB, uid }: LaunchOptions): ChildProcess {
  const node = [process.execPath, "--no-node-snapshot", "--disallow-code-generation-from-strings", "--max-old-space-size=256", CHILD_SCRIPT];
  const [command = "", ...args] = [
    ...confine("network", "files", "privileges"),
    ...confineMemory(dataCapBytes(heapMiB)),
    ...node,
    String(heapMiB),
    String(uid),
  ];
  const child = spawn(command, args, { cwd: "/", env: { TZ: "UTC" }, stdio: ["ignore", "ignore", "pipe", "pipe"] });
  lowerPriority(child.pid);
  return child;
}

/** Guests' loops must not slow the processes that serve everybody. */
function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, NICENESS);
  } catch {
    // It has ended already; its exit tells more.
  }
}
