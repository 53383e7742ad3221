/** How a child is started: as little of the machine in reach as this machine allows. What was reached is found out by the child's self-test, not assumed here. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { setPriority } from "node:os";

/** First of the user ids children run under, one each, so that one taken over cannot touch the next. */
export const DEFAULT_FIRST_UID = 61_200;

const CHILD_SCRIPT = join(__dirname, "child.js");
const NICENESS = 5;

/** Prefixes by which a command gives up abilities, outermost first; each is used only where it works. */
const WRAPPERS: Record<string, string[]> = {
  namespace: ["unshare", "--net", "--ipc", "--"],
  limits: ["prlimit", "--core=0:0", "--fsize=0:0", "--nofile=64:64", "--"],
  privileges: ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+setuid,+setgid", "--"],
};
/** Without root: a user namespace gives an empty network at least. */
const UNPRIVILEGED: Record<string, string[]> = {
  namespace: ["unshare", "--user", "--net", "--ipc", "--"],
  limits: ["prlimit", "--core=0:0", "--fsize=0:0", "--"],
  privileges: ["setpriv", "--no-new-privs", "--"],
};

let usable: string[][] | undefined;

function usableWrappers(): string[][] {
  const candidates = Object.values(process.getuid?.() === 0 ? WRAPPERS : UNPRIVILEGED);
  usable ??= candidates.filter(([command, ...args]) => spawnSync(command!, [...args, "true"], { stdio: "ignore" }).status === 0);
  return usable;
}

export interface LaunchOptions {
  heapMiB: number;
  uid: number;
}

/** Starts a child; descriptor 3 is its channel, descriptor 2 what its engine says when it dies. */
export function launchChild({ heapMiB, uid }: LaunchOptions): ChildProcess {
  const node = [process.execPath, "--no-node-snapshot", "--disallow-code-generation-from-strings", "--max-old-space-size=256", CHILD_SCRIPT];
  const [command, ...args] = [...usableWrappers().flat(), ...node, String(heapMiB), String(uid)];
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
