import { execFileSync } from "node:child_process";

export interface ChildFacts {
  pid: number;
  state: string;
  residentMiB: number;
  command: string;
}

/** The processes a process has started, those that have ended but were not collected (zombies) among them. */
export function childrenOf(pid: number, marker: string): ChildFacts[] {
  const lines = execFileSync("ps", ["-o", "pid=,stat=,rss=,args=", "--ppid", String(pid)], { encoding: "utf8" }).split("\n");
  const facts = lines.map((line) => {
    const [id, state = "", kib, ...command] = line.trim().split(/\s+/);
    return { pid: Number(id), state, residentMiB: Number(kib) / 1024, command: command.join(" ") };
  });
  return facts.filter(({ command }) => command.includes(marker) || command.includes("defunct"));
}
