/** How the executor's own processes give up what they do not need: wrappers they are started through, and the change of user they make themselves. */
import { spawnSync } from "node:child_process";

/** `network`: an empty network namespace. `files`: no writes, no core dumps, few descriptors. `privileges`: none to gain, none to hold. */
export type Confinement = "network" | "files" | "privileges";

const AS_ROOT: Record<Confinement, string[]> = {
  network: ["unshare", "--net", "--ipc", "--"],
  files: ["prlimit", "--core=0:0", "--fsize=0:0", "--nofile=1024:1024", "--nproc=512:512", "--"],
  privileges: ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+setuid,+setgid", "--"],
};

/** Without root: a user namespace gives an empty network at least. */
const AS_USER: Record<Confinement, string[]> = {
  network: ["unshare", "--user", "--net", "--ipc", "--"],
  files: ["prlimit", "--core=0:0", "--fsize=0:0", "--nofile=1024:1024", "--"],
  privileges: ["setpriv", "--no-new-privs", "--"],
};

const works = new Map<Confinement, boolean>();

/** The command prefix for those confinements that this machine can do. What was reached is for a self-test to find out, not assumed. */
export function confine(...wanted: Confinement[]): string[] {
  const wrappers = process.getuid?.() === 0 ? AS_ROOT : AS_USER;
  return wanted.flatMap((confinement) => {
    const [command = "", ...args] = wrappers[confinement];
    const isUsable = works.get(confinement) ?? spawnSync(command, [...args, "true"], { stdio: "ignore" }).status === 0;
    works.set(confinement, isUsable);
    return isUsable ? wrappers[confinement] : [];
  });
}

/** A cap on what a process may write to in memory, enforced by the kernel. */
export function confineMemory(bytes: number): string[] {
  return confine("files").length > 0 ? ["prlimit", `--data=${bytes}:${bytes}`, "--"] : [];
}

/**
 * Becomes another user, once everything needed has been read: `setpriv` leaves the right to do this, and with it done
 * even that is gone. Not done before the start, so that the program may lie where that user cannot read.
 */
export function becomeUser(uid: number | undefined): void {
  if (!uid || process.getuid?.() !== 0) return;
  process.setgroups?.([uid]);
  process.setgid?.(uid);
  process.setuid?.(uid);
}
