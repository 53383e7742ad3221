/** Protects the keyholder's memory before it holds a key: no core dumps, no reads by processes of the same user. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Any group that is not the keyholder's own. */
const OTHER_GROUP = 65_534;

/**
 * Disables core dumps by their size limit. Makes the process non-dumpable by changing the effective group and back: the
 * kernel treats a process that changed its ids as more privileged than its user (credentials(7), prctl(2)
 * PR_SET_DUMPABLE), closes its /proc files and memory to other processes of the user and writes no core dump whatever
 * the limit. Lasts until the next `execve`, which the keyholder never calls.
 * @returns the protections that do not hold on this machine, one sentence each.
 */
export function protectOwnMemory(): string[] {
  const missing: string[] = [];
  spawnSync("prlimit", ["--pid", String(process.pid), "--core=0:0"], { stdio: "ignore" });
  if (!/^Max core file size\s+0\s+0\s/m.test(readOr("/proc/self/limits")))
    missing.push("the keyholder can leave core dumps (prlimit is not there)");
  if (!makeNonDumpable())
    missing.push("the keyholder's memory is open to processes of its own user (it has to be started as root)");
  return missing;
}

function makeNonDumpable(): boolean {
  const own = process.getegid?.();
  try {
    process.setegid?.(OTHER_GROUP);
    process.setegid?.(own ?? 0);
  } catch {
    return false;
  }
  // 1 makes even such processes dumpable, for debugging a whole machine.
  return process.platform === "linux" && readOr("/proc/sys/fs/suid_dumpable").trim() !== "1";
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
