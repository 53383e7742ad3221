/** The self-test of a child: attempts what its barriers must prevent. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { COMMON_BARRIERS, tryBarriers, type Barrier, type Findings } from "../confinement/barriers";

/** Barriers enforced by the kernel. */
const BARRIERS: readonly Barrier[] = [
  ...COMMON_BARRIERS,
  { isMissing: "reach the network", holds: async () => (await isCutOff("127.0.0.1")) && hasNoInterface() },
  {
    isMissing: "are not the first to go when memory runs out",
    holds: () => readFileSync("/proc/self/oom_score_adj", "utf8").trim() === "1000",
  },
];

/** Node's permission model. Tested alone: where it is active, the attempts above would not reach the kernel. */
const PERMISSION_MODEL: readonly Barrier[] = [
  {
    isMissing: "may do what Node's permission model forbids",
    holds: () => ["fs.write", "child", "worker"].every((right) => !process.permission?.has(right)),
  },
  { isMissing: "run without Node's permission model", holds: () => process.permission !== undefined },
];

export function selfTest(secretPaths: string[]): Promise<Findings> {
  return process.permission === undefined
    ? tryBarriers("children", BARRIERS, secretPaths)
    : tryBarriers("children", PERMISSION_MODEL, []);
}

/**
 * Without a network the kernel answers "unreachable" or refuses the socket; a refused connection means that there is
 * one.
 */
function isCutOff(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: 9, timeout: 1_000 });
    const end = (cutOff: boolean) => {
      socket.destroy();
      resolve(cutOff);
    };
    socket.once("connect", () => end(false));
    socket.once("timeout", () => end(false));
    socket.once("error", ({ code }: NodeJS.ErrnoException) =>
      end(code === "ENETUNREACH" || code === "EHOSTUNREACH" || code === "EPERM"),
    );
  });
}

/** Only a loopback interface: no route to other hosts. */
function hasNoInterface(): boolean {
  const lines = readFileSync("/proc/self/net/dev", "utf8").trim().split("\n").slice(2);
  return lines.every((line) => line.trim().startsWith("lo:"));
}
