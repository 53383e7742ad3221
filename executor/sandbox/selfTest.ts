/** What a child tries against its own walls before it is given work. Each barrier is tested by attempting what it should forbid. */
import { closeSync, openSync, readFileSync, writeFileSync, rmSync } from "node:fs";
import { connect } from "node:net";

interface Barrier {
  missing: string;
  holds(): boolean | Promise<boolean>;
}

const status = (field: string): string => new RegExp(`^${field}:\\s*(\\S+)`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
const parentStatus = (): string => readFileSync(`/proc/${process.ppid}/status`, "utf8");

function refuses(attempt: () => void): boolean {
  try {
    attempt();
    return false;
  } catch {
    return true;
  }
}

const BARRIERS: Barrier[] = [
  { missing: "children run as the keyholder's own user", holds: () => !parentStatus().includes(`\nUid:\t${process.getuid?.()}\t`) },
  { missing: "children may gain privileges (no-new-privileges is not set)", holds: () => status("NoNewPrivs") === "1" },
  { missing: "children hold capabilities", holds: () => /^0+$/.test(status("CapEff") + status("CapPrm")) },
  { missing: "children reach the network", holds: async () => (await isCutOff("127.0.0.1")) && hasNoInterface() },
  { missing: "children can read the keyholder's memory", holds: () => refuses(() => closeSync(openSync(`/proc/${process.ppid}/mem`, "r"))) },
  { missing: "children can write files", holds: () => refuses(writeSomething) },
];

export async function selfTest(secretPaths: string[]): Promise<{ missing: string[]; held: number }> {
  const secrets = secretPaths.map((path) => ({ missing: `children can open ${path}`, holds: () => isClosed(path) }));
  const missing: string[] = [];
  for (const barrier of [...BARRIERS, ...secrets]) {
    if (!(await Promise.resolve(barrier.holds()).catch(() => false))) missing.push(barrier.missing);
  }
  return { missing, held: BARRIERS.length + secrets.length - missing.length };
}

function writeSomething(): void {
  const path = `/tmp/.sandbox-self-test-${process.pid}`;
  writeFileSync(path, "x");
  rmSync(path, { force: true });
}

/** A namespace without a network answers "unreachable"; a refusal or a connection means there is one. */
function isCutOff(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: 9, timeout: 1_000 });
    const end = (cutOff: boolean) => {
      socket.destroy();
      resolve(cutOff);
    };
    socket.once("connect", () => end(false));
    socket.once("timeout", () => end(false));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code === "ENETUNREACH" || error.code === "EHOSTUNREACH"));
  });
}

/** No interface but a loopback that is down: no route to anywhere. */
function hasNoInterface(): boolean {
  const lines = readFileSync("/proc/self/net/dev", "utf8").trim().split("\n").slice(2);
  return lines.every((line) => line.trim().startsWith("lo:"));
}

/** Neither as a file nor as a socket. */
async function isClosed(path: string): Promise<boolean> {
  if (!refuses(() => closeSync(openSync(path, "r")))) return false;
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => (socket.destroy(), resolve(false)));
    socket.once("error", () => resolve(true));
  });
}
