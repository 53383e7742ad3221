import { execFileSync } from "node:child_process";

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
  const lines = execFileSync("ps", ["-e", "-o", "pid=,ppid=,stat=,rss=,args="], { encoding: "utf8" })
    .trim()
    .split("\n");
  const all = lines.map((line) => {
    const [id, parent, state = "", kib, ...command] = line.trim().split(/\s+/);
    return {
      pid: Number(id),
      parent: Number(parent),
      state,
      residentMiB: Number(kib) / 1024,
      command: command.join(" "),
    };
  });
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
