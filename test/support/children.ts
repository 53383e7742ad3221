import { readdirSync, readFileSync } from "node:fs";

export interface ChildFacts {
  pid: number;
  state: string;
  residentMiB: number;
  command: string;
}

/**
 * The descendants of a process, also through wrappers that stay alive (bubblewrap, two processes each), and zombies:
 * ended but not reaped.
 */
export function childrenOf(pid: number, marker: string): ChildFacts[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => factsOf(Number(id)) ?? []);
  const family = new Set([pid]);
  // A process id may be lower than its parent's: one pass per generation.
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const process of all) if (family.has(process.parent)) family.add(process.pid);
  }
  const isProgram = (command: string): boolean =>
    !/^(\S*\/)?(bwrap|prlimit|unshare|setpriv)\b/.test(command) && command.includes(marker);
  return all
    .filter(
      ({ pid: id, command }) => id !== pid && family.has(id) && (isProgram(command) || command.includes("defunct")),
    )
    .map(({ parent: _parent, ...facts }) => facts);
}

const PAGE_BYTES = 4_096;

/** From /proc, since a small machine has no `ps`; undefined if the process is gone. */
export function factsOf(pid: number): (ChildFacts & { parent: number }) | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return {
      pid,
      parent: Number(parent),
      state,
      residentMiB: (Number(rest[19]) * PAGE_BYTES) / 2 ** 20,
      command: state === "Z" ? "defunct" : command,
    };
  } catch {
    return undefined;
  }
}
