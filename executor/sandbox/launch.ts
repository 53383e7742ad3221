/** How a child is started: as little of the machine in reach as this machine allows. What was reached is found out by the child's self-test, not assumed here. */
import { spawn, type ChildProcess } from "node:child_process";
import { setPriority } from "node:os";
import { built } from "../built";
import { confine } from "../confine";

/** First of the user ids children run under, one each, so that one taken over cannot touch the next. */
export const DEFAULT_FIRST_UID = 61_200;

const CHILD_SCRIPT = built("sandbox/child.js");
const NICENESS = 5;

export interface LaunchOptions {
  heapMiB: number;
  uid: number;
}

/** Starts a child; descriptor 3 is its channel, descriptor 2 what its engine says when it dies. */
export function launchChild({ heapMiB, uid }: LaunchOptions): ChildProcess {
  const node = [process.execPath, "--no-node-snapshot", "--disallow-code-generation-from-strings", "--max-old-space-size=256", CHILD_SCRIPT];
  const [command, ...args] = [...confine("network", "files", "privileges"), ...node, String(heapMiB), String(uid)];
  const child = spawn(command!, args, { cwd: "/", env: { TZ: "UTC" }, stdio: ["ignore", "ignore", "pipe", "pipe"] });
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
