import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const SETPRIV = "/usr/bin/setpriv";
const GRACE_MS = 7_000;

export interface ManagedProcess {
  readonly name: string;
  readonly child: ChildProcess;
  /** Rejects when the process ends without having been stopped. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

export interface SpawnOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Receives each line the process writes. */
  readonly onLine: (line: string) => void;
}

/** Where Node keeps compiled code between processes: programs that share it start in two thirds of the time. */
export const compileCache = (): { NODE_COMPILE_CACHE: string | undefined } => ({
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
});

/**
 * Starts a process in its own group, so that a Ctrl-C at the terminal reaches only this process, which stops the others
 * in order. On Linux with setpriv the kernel terminates it when this process dies.
 */
export function startProcess({ name, command, args, env, onLine }: SpawnOptions): ManagedProcess {
  const [program, programArgs] = existsSync(SETPRIV)
    ? [SETPRIV, ["--pdeathsig", "TERM", command, ...args]]
    : [command, [...args]];
  const child = spawn(program, programArgs, {
    env: { ...compileCache(), ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const tail: string[] = [];
  const keep = (line: string): void => {
    tail.push(line);
    if (tail.length > 20) tail.shift();
    onLine(line);
  };
  forEachLine(child.stdout, keep);
  forEachLine(child.stderr, keep);

  let stopping = false;
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const died = ended.then((how) =>
    stopping
      ? new Promise<never>(() => undefined)
      : Promise.reject(new Error(`${name} ended (${how}):\n${tail.join("\n")}`)),
  );
  died.catch(() => undefined);

  return {
    name,
    child,
    died,
    async stop() {
      stopping = true;
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      child.kill("SIGTERM");
      await Promise.race([ended, sleep(GRACE_MS, undefined, { ref: false })]);
      if (child.exitCode === null && child.signalCode === null) killGroup(child.pid);
      await ended;
    },
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group ended between the check and the call.
  }
}

function forEachLine(stream: NodeJS.ReadableStream | null, take: (line: string) => void): void {
  let rest = "";
  stream?.setEncoding("utf8");
  stream?.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
  if (stream)
    void once(stream, "end").then(
      () => rest !== "" && take(rest),
      () => undefined,
    );
}

/** Known to scripts/testReporter.cjs by its name. */
class NotReadyInTime extends Error {
  override readonly name = "NotReadyInTime";
}

/** Polls `probe` until it returns true; fails after `timeoutMs` or as soon as the process dies. */
export async function waitUntil(
  what: string,
  probe: () => Promise<boolean>,
  { timeoutMs, died }: { timeoutMs: number; died: Promise<never> },
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (Date.now() < deadline) {
    const yes = await Promise.race([probe().catch(() => false), died]);
    if (yes) return;
    await sleep(25);
  }
  throw new NotReadyInTime(`${what} did not become ready within ${timeoutMs / 1000} s`);
}
