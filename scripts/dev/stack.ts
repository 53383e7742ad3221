/**
 * A whole Keywright on this machine: chain, contract, Stripe double, guest-agent double, executor, relayer. Used by
 * `npm start`, the demo, the benches and the tests. Everything listens on 127.0.0.1 and is ephemeral unless a data
 * directory is given.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { isSilent } from "../../executor/liveness/alive";
import { prepareDatabase } from "./embeddedDatabase";
import { freePort, requireFree } from "./ports";
import { DEVELOPMENT_CHAIN_ID, startChain, type ChainOptions } from "./chain";
import { startProcess, waitUntil, type ManagedProcess } from "./processes";
import { NODE_OPTIONS } from "../nodeOptions";
import { callExecutor, registerPayers } from "./payers";
import { ensureAllowlist, ensureDeployment } from "./localDeployment";
import { askRootCommitment } from "../rootCommitment";
import { startStripeDouble } from "./stripe/server";
import { composeHash } from "../../protocol/attestation";
import { defined } from "../../protocol/defined";
import { defaultAppCompose } from "./tee/appCompose";
import { startGuestAgentDouble } from "./tee/guestAgent";
import { generateEvidences } from "./tee/evidences";
import type { Deployment } from "../deployment";

export const DEFAULT_PORTS = { chain: 8545, relayer: 8000, stripe: 12111, metrics: 9464 } as const;
const PORT_VARIABLES = {
  chain: "CHAIN_PORT",
  relayer: "PORT",
  stripe: "STRIPE_PORT",
  metrics: "METRICS_PORT",
} as const;
type Ports = Record<keyof typeof DEFAULT_PORTS, number>;

/** Services always run from dist, even when this file runs from source, as in tests. */
const DIST = __filename.endsWith(".ts") ? join(__dirname, "..", "..", "dist") : join(__dirname, "..", "..");

/**
 * Mines each transaction immediately and also a block each second: otherwise the chain's clock stands still and keys do
 * not expire until the next write.
 */
const TICKING = ["--block-time", "1", "--mixed-mining"];

const mainOf = (name: "executor" | "relayer"): string => join(DIST, name, "main.js");

const STRIPE_SECRET_KEY = "sk_test_development";
const STRIPE_PUBLISHABLE_KEY = "pk_test_development";
const STRIPE_WEBHOOK_SECRET = "whsec_development";

export interface StackOptions {
  /** Fixed ports, checked to be free first; without them any free ones. */
  readonly ports?: Ports;
  /** Keeps chain, database and root key; default: a temporary directory that is removed at the end. */
  readonly dataDir?: string;
  readonly host?: string;
  readonly payerCount?: number;
  /** Environment for relayer and executor on top of the development defaults. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of the local chain, which then passes for that network. */
  readonly chainId?: bigint;
  /** More arguments for the chain, e.g. a block time. */
  readonly chainArgs?: readonly string[];
  /** What the chain keeps of its past: bounded for long runs, since it keeps all of it in memory. */
  readonly chainKeeps?: Pick<ChainOptions, "statesKept" | "blocksKept">;
  /** Puts a fault proxy between the services and the chain: maps the chain's URL to the one the services use. */
  readonly servicesRpcUrl?: (rpcUrl: string) => string;
  /** Of the simulated TEE's keys: another one is another root. Default: 1. */
  readonly keyEpoch?: number;
  /** One line of progress, or one line of a service's log. */
  readonly onProgress?: (line: string) => void;
  readonly onLog?: (service: ServiceName, line: string) => void;
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
  readonly chain: ManagedProcess;
  service(name: ServiceName): ManagedProcess;
  /** Restarts one service with the same configuration; `signal` stops it. */
  restart(service: ServiceName, signal?: NodeJS.Signals): Promise<void>;
  /** Rejects when a service exits by itself. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/** Cleanup steps, run in reverse order, each even when another one fails. */
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
  const surroundings = await startSurroundings(options, ports, dataDir, teardown);
  const { deployment, rpcUrl, stripeUrl } = surroundings;

  const baseUrl = `http://127.0.0.1:${ports.relayer}`;
  const executorSocket = join(dataDir, "executor.sock");
  const environments = serviceEnvironments(options, { ...surroundings, ports, dataDir, executorSocket });
  const services = new Services(options, {
    executor: {
      env: environments.executor,
      silent: () => isSilent(executorSocket),
      ready: async () => (await callExecutor(executorSocket, "ready", {})).ready,
    },
    relayer: { env: environments.relayer, ready: () => answersOk(`${baseUrl}/ready`) },
  });
  teardown.add(() => services.stop("executor"));
  await services.start("executor");
  progress(`executor  ${executorSocket}`);
  await registerPayers({
    rpcUrl,
    contractAddress: deployment.contractAddress,
    executorSocket,
    payerCount: payerCountOf(options),
  });
  teardown.add(() => services.stop("relayer"));
  if (environments.relayer["DATABASE_URL"] === undefined)
    await prepareDatabase(join(String(environments.relayer["DATA_DIR"]), "pglite"));
  await services.start("relayer");
  progress(`relayer   ${baseUrl}`);

  return {
    baseUrl,
    metricsUrl: `http://127.0.0.1:${ports.metrics}/metrics`,
    rpcUrl,
    stripeUrl,
    executorSocket,
    contractAddress: deployment.contractAddress,
    deployment,
    dataDir,
    chain: surroundings.chain,
    service: (name) => services.get(name),
    restart: (name, signal) => services.restart(name, signal),
    died: Promise.race([surroundings.chain.died, services.died]),
    stop: () => teardown.run(),
  };
}

interface Surroundings {
  readonly rpcUrl: string;
  readonly chain: ManagedProcess;
  readonly deployment: Deployment;
  readonly guestAgentSocket: string;
  readonly evidenceDir: string;
  readonly stripeUrl: string;
}

/** External dependencies: a chain with the contract, a TEE's guest agent, evidence files, Stripe. */
async function startSurroundings(
  options: StackOptions,
  ports: Ports,
  dataDir: string,
  teardown: Teardown,
): Promise<Surroundings> {
  const progress = options.onProgress ?? (() => undefined);
  const state = options.dataDir === undefined ? {} : { stateFile: join(dataDir, "chain.json") };
  const chain = await startChain({
    port: ports.chain,
    chainId: chainIdOf(options),
    extraArgs: options.chainArgs ?? TICKING,
    ...options.chainKeeps,
    ...state,
  });
  teardown.add(() => chain.process.stop());
  progress(`chain     ${chain.rpcUrl}`);

  const deploymentFile = join(dataDir, "deployment.json");
  const guestAgentSocket = join(dataDir, "dstack.sock");
  const allowlist = await ensureAllowlist(chain.rpcUrl, deploymentFile, `0x${composeHash(defaultAppCompose())}`);
  const guestAgent = await startGuestAgentDouble({
    socketPath: guestAgentSocket,
    stateFile: join(dataDir, "tee-seed"),
    appId: Buffer.from(allowlist.slice(2), "hex"),
    ...defined({ keyEpoch: options.keyEpoch }),
  });
  teardown.add(() => guestAgent.stop());
  const rootEnvironment = { ...basicEnvironment(), ...teeEnvironment(dataDir, guestAgentSocket), ...options.env };
  const rootCommitment = (): Promise<string> => askRootCommitment(mainOf("executor"), rootEnvironment);
  const deployment = await ensureDeployment(chain.rpcUrl, deploymentFile, rootCommitment, allowlist);
  progress(`contract  ${deployment.contractAddress} (chain ${deployment.chainId})`);

  const evidenceDir = join(dataDir, "evidences");
  await generateEvidences({ directory: evidenceDir, domain: "localhost", guestAgentSocket });

  const webhookUrl = `http://127.0.0.1:${ports.relayer}/core/v1/billing/webhook`;
  const stripe = await startStripeDouble({ port: ports.stripe, webhookUrl, webhookSecret: STRIPE_WEBHOOK_SECRET });
  teardown.add(() => stripe.stop());
  progress(`stripe    ${stripe.url} (a double)`);
  return {
    rpcUrl: chain.rpcUrl,
    chain: chain.process,
    deployment,
    guestAgentSocket,
    evidenceDir,
    stripeUrl: stripe.url,
  };
}

type ServiceName = "executor" | "relayer";
type Environment = Readonly<Record<string, string | undefined>>;

function serviceEnvironments(
  options: StackOptions,
  facts: Surroundings & { ports: Ports; dataDir: string; executorSocket: string },
): Record<ServiceName, Environment> {
  const shared = {
    ...basicEnvironment(),
    NODE_ENV: "development",
    RPC_URLS: options.servicesRpcUrl?.(facts.rpcUrl) ?? facts.rpcUrl,
    CHAIN_ID: String(chainIdOf(options)),
    CONTRACT_ADDRESS: facts.deployment.contractAddress,
    EXECUTOR_SOCKET: facts.executorSocket,
  };
  return {
    executor: {
      ...shared,
      ...teeEnvironment(facts.dataDir, facts.guestAgentSocket),
      // Receivers of webhooks on this machine; their redirects are not followed.
      WEBHOOK_ALLOW_HOSTS: "127.0.0.1,localhost,[::1]",
      ...options.env,
    },
    relayer: {
      ...shared,
      HOST: options.host ?? "127.0.0.1",
      PORT: String(facts.ports.relayer),
      METRICS_PORT: String(facts.ports.metrics),
      DATA_DIR: join(facts.dataDir, "relayer"),
      PAYER_COUNT: String(payerCountOf(options)),
      STRIPE_API_BASE: facts.stripeUrl,
      STRIPE_SECRET_KEY,
      STRIPE_PUBLISHABLE_KEY,
      STRIPE_WEBHOOK_SECRET,
      EVIDENCE_DIR: facts.evidenceDir,
      ...options.env,
    },
  };
}

const teeEnvironment = (dataDir: string, guestAgentSocket: string): Environment => ({
  NODE_ENV: "development",
  TEE: "simulated",
  DSTACK_ENDPOINT: guestAgentSocket,
  DATA_DIR: join(dataDir, "executor"),
});

const chainIdOf = (options: StackOptions): bigint => options.chainId ?? DEVELOPMENT_CHAIN_ID;
const payerCountOf = (options: StackOptions): number => options.payerCount ?? 4;

/** How often a killed executor (by its watchdog, or out of memory) is restarted, as by a container's restart policy. */
const MAX_RESTARTS = 5;
/** Interval of the checks whether the executor answers. */
const LOOK_EVERY_MS = 2_000;

interface Plan {
  readonly env: Environment;
  readonly ready: () => Promise<boolean>;
  /** True when it listens but does not answer. */
  readonly silent?: () => Promise<boolean>;
}

/** Relayer and executor: started, stopped and restarted by name with the same configuration. */
class Services {
  readonly #running = new Map<ServiceName, ManagedProcess>();
  #restarts = 0;
  #fail!: (error: unknown) => void;
  /** Rejects when a service exits by itself and is not restarted. */
  readonly died = new Promise<never>((_resolve, reject) => (this.#fail = reject));
  readonly #options: StackOptions;
  readonly #plans: Record<ServiceName, Plan>;

  constructor(options: StackOptions, plans: Record<ServiceName, Plan>) {
    this.#options = options;
    this.#plans = plans;
    // Prevents an unhandled rejection; the awaiting callers handle it.
    this.died.catch(() => undefined);
  }

  get(name: ServiceName): ManagedProcess {
    const service = this.#running.get(name);
    if (service === undefined) throw new Error(`${name} is not running`);
    return service;
  }

  async start(name: ServiceName): Promise<void> {
    const { env, ready, silent } = this.#plans[name];
    const onLine = (line: string): void => this.#options.onLog?.(name, line);
    const nodeOptions = ["--enable-source-maps", ...NODE_OPTIONS[name]];
    const service = startProcess({
      name,
      command: process.execPath,
      args: [...nodeOptions, mainOf(name)],
      env,
      onLine,
    });
    this.#running.set(name, service);
    await waitUntil(`the ${name}`, ready, { timeoutMs: 60_000, died: service.died });
    service.died.catch((error: unknown) => this.#onDeath(name, service, error));
    if (silent !== undefined) void this.#endIfSilent(name, service, silent);
  }

  /** Does what the container's healthcheck does: a stopped process cannot end itself. */
  async #endIfSilent(name: ServiceName, service: ManagedProcess, silent: () => Promise<boolean>): Promise<void> {
    while (
      this.#running.get(name) === service &&
      service.child.signalCode === null &&
      service.child.exitCode === null
    ) {
      await sleep(LOOK_EVERY_MS, undefined, { ref: false });
      if (this.#running.get(name) === service && (await silent())) service.child.kill("SIGKILL");
    }
  }

  #onDeath(name: ServiceName, { child }: ManagedProcess, error: unknown): void {
    if (name !== "executor" || child.signalCode !== "SIGKILL" || ++this.#restarts > MAX_RESTARTS)
      return this.#fail(error);
    this.#options.onProgress?.("the executor was killed and is started again");
    this.start(name).catch((failure: unknown) => this.#fail(failure));
  }

  async stop(name: ServiceName): Promise<void> {
    await this.#running.get(name)?.stop();
    this.#running.delete(name);
  }

  async restart(name: ServiceName, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (signal !== "SIGTERM") this.get(name).child.kill(signal);
    await this.stop(name);
    await this.start(name);
  }
}

async function choosePorts(wanted: Ports | undefined): Promise<Ports> {
  if (wanted === undefined)
    return { chain: await freePort(), relayer: await freePort(), stripe: await freePort(), metrics: await freePort() };
  for (const name of Object.keys(PORT_VARIABLES) as (keyof Ports)[])
    await requireFree(wanted[name], name, PORT_VARIABLES[name]);
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

/** The services inherit only the environment variables that a process needs to run. */
function basicEnvironment(): Record<string, string | undefined> {
  const { PATH, HOME, TMPDIR, LANG, LOG_LEVEL } = process.env;
  return { PATH, HOME, TMPDIR, LANG, LOG_LEVEL };
}

async function answersOk(url: string): Promise<boolean> {
  const { statusCode, body } = await request(url);
  await body.dump();
  return statusCode === 200;
}
