/** What the keyholder does about its own memory before it holds a key: nobody dumps it, and nobody of its own user reads it. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Any group that is not the keyholder's own. */
const OTHER_GROUP = 65_534;

/**
 * No core dumps, by the limit of their size. Not dumpable, by a change of the effective group and back: the kernel takes a process that changed its ids for one
 * that may know more than its user (credentials(7), prctl(2) PR_SET_DUMPABLE), closes its /proc files and memory to others of the same user, and leaves no core
 * dump of it whatever the limit says. Holds until the next `execve`, which the keyholder never does.
 * @returns what does not hold on this machine, one sentence each.
 */
export function closeOwnMemory(): string[] {
  const missing: string[] = [];
  spawnSync("prlimit", ["--pid", String(process.pid), "--core=0:0"], { stdio: "ignore" });
  if (!/^Max core file size\s+0\s+0\s/m.test(readOr("/proc/self/limits"))) missing.push("the keyholder can leave core dumps (prlimit is not there)");
  if (!becameUndumpable()) missing.push("the keyholder's memory is open to processes of its own user (it has to be started as root)");
  return missing;
}

function becameUndumpable(): boolean {
  const own = process.getegid?.();
  try {
    process.setegid?.(OTHER_GROUP);
    process.setegid?.(own ?? 0);
  } catch {
    return false;
  }
  // With 1 the kernel leaves such processes open, for debugging the whole machine.
  return process.platform === "linux" && readOr("/proc/sys/fs/suid_dumpable").trim() !== "1";
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
