/**
 * A whole Keywright on this machine: chain, contract, Stripe double, guest-agent double, executor, relayer. `npm start`, the demo, the benches and the tests all
 * start it here. Everything listens on 127.0.0.1 and is ephemeral unless a data directory is given.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { request } from "undici";
import { freePort, requireFree } from "./ports";
import { DEVELOPMENT_CHAIN_ID, startChain } from "./chain";
import { startProcess, waitUntil, type ManagedProcess } from "./processes";
import { callExecutor, registerPayers } from "./payers";
import { ensureDeployment } from "./localDeployment";
import { startStripeDouble } from "./stripe/server";
import { startGuestAgentDouble } from "./tee/guestAgent";
import { generateEvidences } from "./tee/evidences";
import type { Deployment } from "../deployment";

export const DEFAULT_PORTS = { chain: 8545, relayer: 8000, stripe: 12111, metrics: 9464 } as const;
const PORT_VARIABLES = { chain: "CHAIN_PORT", relayer: "PORT", stripe: "STRIPE_PORT", metrics: "METRICS_PORT" } as const;
type Ports = Record<keyof typeof DEFAULT_PORTS, number>;

const STRIPE_SECRET_KEY = "sk_test_development";
const STRIPE_PUBLISHABLE_KEY = "pk_test_development";
const STRIPE_WEBHOOK_SECRET = "whsec_development";

export interface StackOptions {
  /** Fixed ports, checked to be free first; without them any free ones. */
  readonly ports?: Ports;
  /** Keeps chain, database and root key here; without it a temporary directory that is removed at the end. */
  readonly dataDir?: string;
  readonly host?: string;
  readonly payerCount?: number;
  /** Environment for relayer and executor on top of the development defaults. */
  readonly env?: Readonly<Record<string, string>>;
  /** More arguments for the chain, e.g. a block time. */
  readonly chainArgs?: readonly string[];
  /** Lets a fault proxy stand between the services and the chain: gets the chain's URL, returns the one the services use. */
  readonly rpcUrlFor?: (rpcUrl: string) => Promise<string> | string;
  readonly deploymentFile?: string;
  /** One line of progress, or one line of a service's log. */
  readonly onProgress?: (line: string) => void;
  readonly onLog?: (service: string, line: string) => void;
}

export interface Stack {
  readonly baseUrl: string;
  readonly metricsUrl: string;
  readonly rpcUrl: string;
  readonly stripeUrl: string;
  readonly executorSocket: string;
  readonly contractAddress: string;
  readonly deployment: Deployment;
  readonly dataDir: string;
  readonly executor: ManagedProcess;
  readonly relayer: ManagedProcess;
  /** Stops and starts one service again with the same configuration; `signal` says how it ends. */
  restart(service: "executor" | "relayer", signal?: NodeJS.Signals): Promise<void>;
  /** Rejects when a service ends by itself. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/** Things to undo, last first, each even when another one fails. */
class Teardown {
  readonly #steps: (() => Promise<void> | void)[] = [];
  add(step: () => Promise<void> | void): void {
    this.#steps.unshift(step);
  }
  async run(): Promise<void> {
    for (const step of this.#steps.splice(0)) await Promise.resolve(step()).catch(() => undefined);
  }
}

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const teardown = new Teardown();
  try {
    return await startInOrder(options, teardown);
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

async function startInOrder(options: StackOptions, teardown: Teardown): Promise<Stack> {
  const progress = options.onProgress ?? (() => undefined);
  const ports = await choosePorts(options.ports);
  const dataDir = prepareDataDir(options.dataDir, teardown);

  const chain = await startChain({
    port: ports.chain,
    extraArgs: options.chainArgs ?? [],
    ...(options.dataDir === undefined ? {} : { stateFile: join(dataDir, "chain.json") }),
  });
  teardown.add(() => chain.process.stop());
  progress(`chain     ${chain.rpcUrl}`);

  const deployment = await ensureDeployment(chain.rpcUrl, options.deploymentFile ?? join(dataDir, "deployment.json"));
  progress(`contract  ${deployment.contractAddress} (chain ${deployment.chainId})`);

  const guestAgentSocket = join(dataDir, "dstack.sock");
  const guestAgent = await startGuestAgentDouble({ socketPath: guestAgentSocket, stateFile: join(dataDir, "tee-seed") });
  teardown.add(() => guestAgent.stop());
  const evidenceDir = join(dataDir, "evidences");
  await generateEvidences({ directory: evidenceDir, domain: "localhost", guestAgentSocket });

  const stripe = await startStripeDouble({
    port: ports.stripe,
    webhookUrl: `http://127.0.0.1:${ports.relayer}/core/v1/billing/webhook`,
    webhookSecret: STRIPE_WEBHOOK_SECRET,
  });
  teardown.add(() => stripe.stop());
  progress(`stripe    ${stripe.url} (a double)`);

  const rpcUrl = (await options.rpcUrlFor?.(chain.rpcUrl)) ?? chain.rpcUrl;
  const executorSocket = join(dataDir, "executor.sock");
  const shared = {
    ...basicEnvironment(),
    NODE_ENV: "development",
    RPC_URLS: rpcUrl,
    CHAIN_ID: String(DEVELOPMENT_CHAIN_ID),
    CONTRACT_ADDRESS: deployment.contractAddress,
    EXECUTOR_SOCKET: executorSocket,
  };
  const payerCount = options.payerCount ?? 4;
  const environments = {
    executor: { ...shared, TEE: "simulated", DSTACK_ENDPOINT: guestAgentSocket, DATA_DIR: join(dataDir, "executor"), ...options.env },
    relayer: {
      ...shared,
      HOST: options.host ?? "127.0.0.1",
      PORT: String(ports.relayer),
      METRICS_PORT: String(ports.metrics),
      DATA_DIR: join(dataDir, "relayer"),
      PAYER_COUNT: String(payerCount),
      STRIPE_API_BASE: stripe.url,
      STRIPE_SECRET_KEY,
      STRIPE_PUBLISHABLE_KEY,
      STRIPE_WEBHOOK_SECRET,
      EVIDENCE_DIR: evidenceDir,
      ...options.env,
    },
  };
  const baseUrl = `http://127.0.0.1:${ports.relayer}`;
  const launch = {
    executor: () => startService("executor", environments.executor, options, () => executorReady(executorSocket)),
    relayer: () => startService("relayer", environments.relayer, options, () => answersOk(`${baseUrl}/ready`)),
  };

  const running: { executor?: ManagedProcess; relayer?: ManagedProcess } = {};
  teardown.add(() => running.executor?.stop());
  running.executor = await launch.executor();
  progress(`executor  ${executorSocket}`);
  await registerPayers({ rpcUrl: chain.rpcUrl, contractAddress: deployment.contractAddress, executorSocket, payerCount });
  teardown.add(() => running.relayer?.stop());
  running.relayer = await launch.relayer();
  progress(`relayer   ${baseUrl}`);

  const current = (service: "executor" | "relayer"): ManagedProcess => running[service] ?? raise(`${service} is not running`);
  return {
    baseUrl,
    metricsUrl: `http://127.0.0.1:${ports.metrics}/metrics`,
    rpcUrl: chain.rpcUrl,
    stripeUrl: stripe.url,
    executorSocket,
    contractAddress: deployment.contractAddress,
    deployment,
    dataDir,
    get executor() {
      return current("executor");
    },
    get relayer() {
      return current("relayer");
    },
    async restart(service, signal = "SIGTERM") {
      if (signal === "SIGKILL") current(service).child.kill("SIGKILL");
      await current(service).stop();
      running[service] = await launch[service]();
    },
    died: Promise.race([chain.process.died, current("executor").died, current("relayer").died]),
    stop: () => teardown.run(),
  };
}

async function choosePorts(wanted: Ports | undefined): Promise<Ports> {
  if (wanted === undefined) return { chain: await freePort(), relayer: await freePort(), stripe: await freePort(), metrics: await freePort() };
  for (const name of Object.keys(PORT_VARIABLES) as (keyof Ports)[]) await requireFree(wanted[name], name, PORT_VARIABLES[name]);
  return wanted;
}

function prepareDataDir(dataDir: string | undefined, teardown: Teardown): string {
  if (dataDir !== undefined) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    return dataDir;
  }
  const temporary = mkdtempSync(join(tmpdir(), "keywright-"));
  teardown.add(() => rmSync(temporary, { recursive: true, force: true }));
  return temporary;
}

/** The services see nothing of the shell's environment but what a process needs to run. */
function basicEnvironment(): Record<string, string | undefined> {
  const { PATH, HOME, TMPDIR, LANG, LOG_LEVEL } = process.env;
  return { PATH, HOME, TMPDIR, LANG, LOG_LEVEL };
}

async function startService(
  name: "executor" | "relayer",
  env: Record<string, string | undefined>,
  options: StackOptions,
  ready: () => Promise<boolean>,
): Promise<ManagedProcess> {
  const main = join(__dirname, "..", "..", "..", "dist", name, "main.js");
  const service = startProcess({ name, command: process.execPath, args: ["--enable-source-maps", main], env, onLine: (line) => options.onLog?.(name, line) });
  try {
    await waitUntil(`the ${name}`, ready, { timeoutMs: 60_000, died: service.died });
    return service;
  } catch (error) {
    await service.stop();
    throw error;
  }
}

async function executorReady(socketPath: string): Promise<boolean> {
  return (await callExecutor(socketPath, "ready", {})).ready;
}

async function answersOk(url: string): Promise<boolean> {
  const { statusCode, body } = await request(url);
  await body.dump();
  return statusCode === 200;
}

function raise(message: string): never {
  throw new Error(message);
}
