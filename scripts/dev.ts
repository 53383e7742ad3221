/**
 * `npm start`: a whole Keywright on this machine until Ctrl-C or SIGTERM. Ports and data directory come from the
 * environment (docs/first-run.md).
 */
import { DEFAULT_PORTS, startStack, type Stack } from "./dev/stack";
import { VERSION } from "../protocol/version";

function portFrom(variable: string, byDefault: number): number {
  const text = process.env[variable];
  if (text === undefined || text === "") return byDefault;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${variable}=${text} is not a port (1 to 65535).`);
  return port;
}

/** Environment variables passed on to the services unchanged. */
const PASSED_ON = new Set([
  ...["SERVICE_NAME", "SIGNUP_CREDIT_CENTS", "ALLOW_PRIVATE_KEYS", "POOL_SIZE", "DATABASE_URL"],
  ...[
    "CONFIRMATIONS_BEFORE_ANSWER",
    "MODULE_ORIGIN",
    "ACTION_RPC_URLS",
    "IPFS_GATEWAYS",
    "KUBO_RPC_URL",
    "IDENTITY_ISSUERS",
  ],
]);
const PASSED_ON_PREFIX = /^(RATE_LIMIT|RUN_LIMIT|PRICE|FETCH|WEBHOOK)_\w/;

function passedOn(): Record<string, string> {
  const isPassedOn = (name: string): boolean => PASSED_ON.has(name) || PASSED_ON_PREFIX.test(name);
  const chosen = Object.entries(process.env).filter(
    (entry): entry is [string, string] => isPassedOn(entry[0]) && entry[1] !== undefined,
  );
  return Object.fromEntries(chosen);
}

function start(): Promise<Stack> {
  const { DATA_DIR, HOST, PAYER_COUNT, SIMULATED_KEY_EPOCH, VERBOSE } = process.env;
  return startStack({
    ports: {
      chain: portFrom("CHAIN_PORT", DEFAULT_PORTS.chain),
      relayer: portFrom("PORT", DEFAULT_PORTS.relayer),
      stripe: portFrom("STRIPE_PORT", DEFAULT_PORTS.stripe),
      metrics: portFrom("METRICS_PORT", DEFAULT_PORTS.metrics),
    },
    ...(DATA_DIR ? { dataDir: DATA_DIR } : {}),
    ...(HOST ? { host: HOST } : {}),
    ...(PAYER_COUNT ? { payerCount: Number(PAYER_COUNT) } : {}),
    ...(SIMULATED_KEY_EPOCH ? { keyEpoch: Number(SIMULATED_KEY_EPOCH) } : {}),
    env: passedOn(),
    onProgress: (line) => console.log(line),
    onLog: (service, line) => {
      if (VERBOSE || /"level":(50|60)/.test(line)) console.error(`[${service}] ${line}`);
    },
  });
}

/** How well the processes that run actions are isolated on this machine, and what is missing. */
async function isolationOf({ baseUrl }: Stack): Promise<string> {
  const { sandbox } = (await (await fetch(`${baseUrl}/info`)).json()) as {
    sandbox: { level: string; missing: readonly string[] };
  };
  const [cause] = sandbox.missing;
  return cause === undefined ? sandbox.level : `${sandbox.level}: ${cause}`;
}

async function main(): Promise<void> {
  let stopping = false;
  const asked = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        stopping = true;
        resolve();
      });
    }
  });
  const stack = await start();
  if (!stopping) {
    console.log(`viewer    ${stack.baseUrl}/core/v1/swagger-ui   metrics ${stack.metricsUrl}`);
    console.log(`dashboard ${stack.baseUrl}`);
    console.log(`package   npm install ${stack.baseUrl}/packages/keywright-${VERSION}.tgz`);
    console.log(`isolation ${await isolationOf(stack)}`);
    console.log(
      process.env.DATA_DIR
        ? `data      ${stack.dataDir}`
        : "data      ephemeral: gone at the end (set DATA_DIR to keep it)",
    );
    console.log("\nReady. Ctrl-C stops everything.");
  }
  const outcome = await Promise.race([asked, stack.died.catch((error: unknown) => error)]);
  if (outcome instanceof Error) {
    console.error(outcome.message);
    process.exitCode = 1;
  } else {
    console.log("\nStopping …");
  }
  await stack.stop();
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
