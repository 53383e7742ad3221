/**
 * Self-tests of the executor's processes before they get work: each barrier is tested by attempting what it must
 * prevent.
 */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { passedOn } from "./inherited";

/** Completes a sentence that starts with "children …" or "the fetcher …". */
export interface Barrier {
  isMissing: string;
  holds(): boolean | Promise<boolean>;
}

export interface Findings {
  /** One sentence per barrier that does not hold. */
  missing: string[];
  /** How many barriers hold. */
  held: number;
}

const ALMOST_ALL_PROCESSES = 2;

/** Barriers of every process that handles untrusted input. */
export const COMMON_BARRIERS: readonly Barrier[] = [
  {
    isMissing: "run as the keyholder's own user",
    holds: () => !parentStatus().includes(`\nUid:\t${process.getuid?.()}\t`),
  },
  { isMissing: "may gain privileges (no-new-privileges is not set)", holds: () => status("NoNewPrivs") === "1" },
  { isMissing: "hold capabilities", holds: () => /^0+$/.test(["CapEff", "CapPrm", "CapAmb"].map(status).join("")) },
  { isMissing: "may make any system call (no seccomp filter)", holds: () => status("Seccomp") === "2" },
  { isMissing: "can start programs", holds: () => spawnSync(process.execPath, ["--version"]).error !== undefined },
  { isMissing: "see other processes (no process namespace)", holds: () => processes().length <= ALMOST_ALL_PROCESSES },
  {
    isMissing: "can read the keyholder's memory",
    holds: () => refuses(() => closeSync(openSync(`/proc/${process.ppid}/mem`, "r"))),
  },
  { isMissing: "can write files", holds: () => refuses(writeSomething) },
  { isMissing: "have descriptors that the keyholder was started with", holds: () => passedOn().length === 0 },
  {
    isMissing: "can leave core dumps",
    holds: () => /^Max core file size\s+0\s+0\s/m.test(readFileSync("/proc/self/limits", "utf8")),
  },
];

/** Tests the barriers of a process, and that none of `secretPaths` can be opened. */
export async function tryBarriers(
  who: string,
  barriers: readonly Barrier[],
  secretPaths: readonly string[],
): Promise<Findings> {
  const secrets = secretPaths.map((path) => ({ isMissing: `can open ${path}`, holds: () => isClosed(path) }));
  const missing: string[] = [];
  for (const { isMissing, holds } of [...barriers, ...secrets]) {
    const held = await Promise.resolve()
      .then(holds)
      .catch(() => false);
    if (!held) missing.push(`${who} ${isMissing}`);
  }
  return { missing, held: barriers.length + secrets.length - missing.length };
}

export const status = (field: string): string =>
  new RegExp(`^${field}:\\s*(\\S+)`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
const parentStatus = (): string => readFileSync(`/proc/${process.ppid}/status`, "utf8");
/** In its own PID namespace a process sees only itself and the process that started it there. */
const processes = (): string[] => readdirSync("/proc").filter((name) => /^\d+$/.test(name));

function refuses(attempt: () => void): boolean {
  try {
    attempt();
    return false;
  } catch {
    return true;
  }
}

function writeSomething(): void {
  const path = `/tmp/.sandbox-self-test-${process.pid}`;
  try {
    writeFileSync(path, "x");
  } finally {
    // A limit of the file's size refuses the write after the file was made.
    rmSync(path, { force: true });
  }
}

/** Whether the path opens neither as a file nor as a socket. */
async function isClosed(path: string): Promise<boolean> {
  if (!refuses(() => closeSync(openSync(path, "r")))) return false;
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => (socket.destroy(), resolve(false)));
    socket.once("error", () => resolve(true));
  });
}
