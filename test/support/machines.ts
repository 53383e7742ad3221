/**
 * More machines beside a stack's own: each with its own relayer and executor, on the stack's chain and TEE and one
 * PostgreSQL.
 */
import { once } from "node:events";
import { join } from "node:path";
import { freePort } from "../../scripts/dev/ports";
import { startProcess, waitUntil, type ManagedProcess } from "../../scripts/dev/processes";
import type { Stack } from "../../scripts/dev/stack";

const DIST = join(__dirname, "..", "..", "dist");

export interface MachineOptions {
  readonly stack: Stack;
  readonly databaseUrl: string;
  /** For both processes. */
  readonly env: Readonly<Record<string, string>>;
}

export class Machine {
  #executor: ManagedProcess | undefined;
  #relayer: ManagedProcess | undefined;
  readonly #metricsPort: number;
  readonly #options: MachineOptions;

  private constructor(
    readonly name: string,
    readonly port: number,
    metricsPort: number,
    options: MachineOptions,
  ) {
    this.#metricsPort = metricsPort;
    this.#options = options;
  }

  static async start(name: string, options: MachineOptions): Promise<Machine> {
    const machine = new Machine(name, await freePort(), await freePort(), options);
    await machine.start();
    return machine;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Also after a kill, on the same port and with the executor's files on disk. */
  async start(): Promise<void> {
    const { stack, databaseUrl, env } = this.#options;
    const folder = join(stack.dataDir, `machine-${this.name}`);
    const shared = {
      PATH: process.env.PATH,
      NODE_ENV: "development",
      RPC_URLS: stack.rpcUrl,
      CHAIN_ID: String(stack.deployment.chainId),
      CONTRACT_ADDRESS: stack.contractAddress,
      EXECUTOR_SOCKET: join(folder, "executor.sock"),
    };
    const tee = {
      TEE: "simulated",
      DSTACK_ENDPOINT: join(stack.dataDir, "dstack.sock"),
      DATA_DIR: join(folder, "executor"),
    };
    const http = { PORT: String(this.port), METRICS_PORT: String(this.#metricsPort), DATABASE_URL: databaseUrl };
    this.#executor = start(`executor ${this.name}`, "executor", { ...shared, ...tee, ...env });
    this.#relayer = start(`relayer ${this.name}`, "relayer", { ...shared, ...http, ...env });
    await waitUntil(`machine ${this.name}`, async () => (await fetch(`${this.baseUrl}/ready`)).ok, {
      timeoutMs: 60_000,
      died: this.#relayer.died,
    });
  }

  /** Simulates a power cut: kills everything at once. Returns when both processes have exited. */
  async kill(): Promise<void> {
    const running = [this.#relayer, this.#executor].filter((one) => one !== undefined);
    const ended = running.map(({ child }) => once(child, "exit"));
    for (const { child } of running) child.kill("SIGKILL");
    await Promise.all(ended);
  }

  /** Leaves the executor to whoever takes its socket. */
  async stopRelayer(): Promise<void> {
    await this.#relayer?.stop();
  }

  async stop(): Promise<void> {
    await this.#relayer?.stop();
    await this.#executor?.stop();
  }
}

function start(
  name: string,
  program: "executor" | "relayer",
  env: Readonly<Record<string, string | undefined>>,
): ManagedProcess {
  return startProcess({
    name,
    command: process.execPath,
    args: [join(DIST, program, "main.js")],
    env,
    onLine: () => undefined,
  });
}
