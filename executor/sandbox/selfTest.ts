/** What a child tries against its own walls before children are given work. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { COMMON_BARRIERS, tryBarriers, type Barrier, type Findings } from "../walls/barriers";

/** Barriers of the kernel. */
const BARRIERS: readonly Barrier[] = [
  ...COMMON_BARRIERS,
  { isMissing: "reach the network", holds: async () => (await isCutOff("127.0.0.1")) && hasNoInterface() },
  { isMissing: "are not the first to go when memory runs out", holds: () => readFileSync("/proc/self/oom_score_adj", "utf8").trim() === "1000" },
];

/** Node's own fence. Where it stands, the attempts above would not get as far as the kernel: it is tested alone. */
const FENCE: readonly Barrier[] = [
  { isMissing: "may do what Node's permission model forbids", holds: () => ["fs.write", "child", "worker"].every((right) => !process.permission?.has(right)) },
  { isMissing: "run without Node's permission model", holds: () => process.permission !== undefined },
];

export function selfTest(secretPaths: string[]): Promise<Findings> {
  return process.permission === undefined ? tryBarriers("children", BARRIERS, secretPaths) : tryBarriers("children", FENCE, []);
}

/** Without a network the kernel answers "unreachable", or refuses the socket; a refused connection means that there is one. */
function isCutOff(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: 9, timeout: 1_000 });
    const end = (cutOff: boolean) => {
      socket.destroy();
      resolve(cutOff);
    };
    socket.once("connect", () => end(false));
    socket.once("timeout", () => end(false));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => end(code === "ENETUNREACH" || code === "EHOSTUNREACH" || code === "EPERM"));
  });
}

/** No interface but a loopback: no route to anywhere. */
function hasNoInterface(): boolean {
  const lines = readFileSync("/proc/self/net/dev", "utf8").trim().split("\n").slice(2);
  return lines.every((line) => line.trim().startsWith("lo:"));
}
