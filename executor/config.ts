/**
 * The executor's configuration and the only reader of its environment. Every variable is validated and documented; an
 * invalid one prevents the start and says what to fix. Secrets and endpoints are removed from the environment once
 * read, so that no child process inherits them.
 */
import { Resolver } from "node:dns";
import { readFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { z } from "zod";
import { deploymentSettings, type DeploymentSettings } from "../protocol/deployment";
import { eventChainsSchema } from "../protocol/eventChains";
import { PRICES, RUN_LIMITS, type Prices, type RunLimits } from "../protocol/limits";
import { DEFAULT_SERVICE_NAME, SERVICE_NAME_PATTERN } from "../protocol/serviceName";
import { leaseDepthOf, type LeaseDepth } from "./budgets/depth";
import { LIMIT_CEILINGS, LIMIT_NAMES, limitVariable, type LimitName } from "./limits";
import { parseJson } from "../protocol/json";

export const DEVELOPMENT_CHAIN_ID = 31_337n;
const DEFAULT_MAX_HEAD_AGE_SECONDS = 60;
/**
 * Development: below the seven to ten seconds after which a stack is killed. Production: the default limit of a run.
 */
const DEFAULT_DRAIN_SECONDS = { development: 5, production: 60 };
/** More than the largest pool uses. */
const SANDBOX_UIDS = 16_384;
const DEFAULT_GAS_WEI_PER_HOUR = { development: 10n ** 24n, production: 10n ** 19n };
/** Longest path of a Unix socket on Linux, without the terminating zero. */
const MAX_SOCKET_PATH_BYTES = 107;

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly problems: readonly string[]) {
    super(`The executor's configuration cannot be used:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
  }
}

type Environment = Record<string, string | undefined>;

const integer = (min: number, max: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^[0-9]+$/, "must be a whole number")
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`);
const wei = z
  .string()
  .regex(/^[1-9][0-9]{0,29}$/, "must be a positive number of wei")
  .transform(BigInt);
const flag = z.enum(["true", "false"], "must be true or false").transform((value) => value === "true");
const absolutePath = z.string().refine(isAbsolute, "must be an absolute path");
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);
const httpUrl = z.string().refine(isHttpUrl, "must be an http(s) URL");
const httpUrls = list.refine(
  (urls) => urls.length > 0 && urls.every(isHttpUrl),
  "must be http(s) URLs, separated by commas",
);
const issuer = z.strictObject({ issuer: z.url(), jwksUrl: z.url(), audience: z.string().min(1) });
export type IdentityIssuer = Readonly<z.infer<typeof issuer>>;

/**
 * Every variable with its validation. Its description is shown when the value is invalid and is part of
 * docs/operations.md.
 */
const VARIABLES = {
  NODE_ENV: z
    .enum(["development", "production", "test"])
    .default("development")
    .describe("production refuses everything that is only for development"),
  SERVICE_NAME: z
    .string()
    .regex(SERVICE_NAME_PATTERN)
    .default(DEFAULT_SERVICE_NAME)
    .describe("the service's name: letters and digits; part of the typed-data domain"),
  LOG_LEVEL: z
    .enum(["fatal", "error", "warn", "info", "debug", "trace"])
    .default("info")
    .describe("least severe line to log; no level logs a secret"),
  EXECUTOR_SOCKET: absolutePath
    .refine(
      (path) => Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES,
      `must be at most ${MAX_SOCKET_PATH_BYTES} bytes long`,
    )
    .describe("path of the Unix socket the executor listens on; there is no TCP"),
  EXECUTOR_SOCKET_GROUP: integer(0, 2 ** 31)
    .optional()
    .describe("numeric id of the group shared with the relayer alone; the socket is then of mode 0660, else 0600"),
  RPC_URLS: httpUrls.describe("JSON-RPC endpoints of the chain, separated by commas, in order of preference"),
  RPC_QUORUM: integer(1, 16).default(1).describe("how many endpoints must agree on every decision, at the same block"),
  EVENT_RPC_URLS: eventChainsSchema.describe(
    "further chains whose logs may fire triggers, with at least RPC_QUORUM endpoints: 10=https://…,https://… 8453=…",
  ),
  RPC_TIMEOUT_MS: integer(50, 60_000).default(5_000).describe("deadline of one call to one endpoint, in milliseconds"),
  CHAIN_ID: integer(1, Number.MAX_SAFE_INTEGER).optional().describe("the chain's id; DEPLOYMENT_FILE gives it too"),
  CONTRACT_ADDRESS: z
    .string()
    .optional()
    .describe(
      "the address of the AccountManager that governs the keys; DEPLOYMENT_FILE gives it too; none: before it is " +
        "deployed, to learn the commitment to the root key",
    ),
  DEPLOYMENT_FILE: absolutePath.optional().describe("a file of deployments/, instead of CHAIN_ID and CONTRACT_ADDRESS"),
  MAX_HEAD_AGE_SECONDS: integer(0, 86_400)
    .optional()
    .describe(
      "maximum age of the chain's head for decisions; default 60, and 0 (off) on the development chain; " +
        "production refuses 0",
    ),
  TEE: z.enum(["dstack", "simulated", "none"]).default("none").describe("where the root key and quotes come from"),
  DSTACK_ENDPOINT: z.string().optional().describe("the guest agent's Unix socket or http(s) address"),
  TLS_CERT_FILE: absolutePath.optional().describe("the PEM file the TLS ingress serves; its leaf is bound into quotes"),
  ROOT_KEY_FILE: absolutePath
    .optional()
    .describe("development only: the root key, made with mode 0600 at the first start"),
  DATA_DIR: absolutePath
    .optional()
    .describe(
      "where code by CID is kept, and in development without a TEE the root key; without it all of it is " +
        "discarded at exit",
    ),
  CODE_STORE_MIB: integer(16, 1_000_000).default(1_024).describe("how much code by CID is kept at most, in MiB"),
  POOL_SIZE: integer(1, 1_024).optional().describe("how many runs at once; default from memory and cores"),
  SANDBOX_MEMORY_MIB: integer(128, 1_000_000)
    .optional()
    .describe(
      "memory of all children that run actions together, in MiB; default half of the memory " +
        "of the container or machine",
    ),
  DRAIN_SECONDS: integer(0, 900)
    .optional()
    .describe("how long running actions may take to finish when the executor stops; default 5, and 60 in production"),
  ALLOW_PRIVATE_KEYS: flag
    .default(true)
    .describe("whether getPrivateKey may return a PKP's key to an action that a group lists by name"),
  IDENTITY_ISSUERS: z
    .string()
    .default("[]")
    .transform(requireJson)
    .pipe(z.array(issuer).max(16))
    .describe('identity providers: a JSON list of {"issuer", "jwksUrl", "audience"}'),
  MODULE_ORIGIN: httpUrl.optional().describe("where actions' imports are fetched from"),
  ACTION_RPC_URLS: z
    .string()
    .default("")
    .transform((text, ctx): Readonly<Record<string, string>> => {
      const chains = text.split(/\s+/).filter((part) => part !== "");
      const named = chains.map((part) => /^([a-zA-Z][a-zA-Z0-9_-]*)=(.+)$/.exec(part)?.slice(1) ?? []);
      const names = new Set(named.map(([name]) => name));
      if (names.size === chains.length && named.every(([, url = ""]) => isHttpUrl(url)))
        return Object.fromEntries(named);
      ctx.issues.push({ code: "custom", message: "must be <chain>=<URL> …, each chain once", input: text });
      return z.NEVER;
    })
    .describe(
      "what getRpcUrl answers to actions, which can all read it: ethereum=https://… base=https://…; " +
        "no provider's key belongs in it",
    ),
  IPFS_GATEWAYS: httpUrls.optional().describe("trustless gateways for code by CID, separated by commas"),
  KUBO_RPC_URL: httpUrl.optional().describe("a Kubo node's RPC for code by CID"),
  FETCH_ALLOW_HOSTS: list
    .optional()
    .describe("hosts that actions may reach although their addresses are not public, separated by commas"),
  FETCH_PORTS: list
    .pipe(z.array(integer(1, 65_535)).min(1))
    .optional()
    .describe("ports that actions and webhooks may reach; default 80 and 443"),
  WEBHOOK_ALLOW_HOSTS: list
    .optional()
    .describe("development only: hosts where webhooks may be although their addresses are not public"),
  DNS_SERVERS: list
    .refine(
      (servers) => servers.length > 0 && servers.every(isNameServer),
      "must be addresses, or address:port, separated by commas",
    )
    .optional()
    .describe("name servers for the hosts that actions fetch from; default those of /etc/resolv.conf"),
  MAX_FEE_PER_GAS_WEI: wei.default(2_000_000_000_000n).describe("no payer signs a higher fee per gas"),
  MAX_TIP_PER_GAS_WEI: wei
    .default(100_000_000_000n)
    .describe("a payer's fee per gas is at most ten base fees and this"),
  MAX_GAS_WEI_PER_HOUR: wei
    .optional()
    .describe(
      "what the payers' gas may cost within an hour at the fees signed; default 10^19 (ten coins) in production, " +
        "a million coins else",
    ),
  LEASE_CONFIRMATIONS: integer(1, 1_000)
    .optional()
    .describe(
      "blocks that the lease of a budget needs, its own included, before anything is spent of it; default by " +
        "network, 1 on the development chain",
    ),
  MAX_TOP_UP_WEI: wei
    .default(1_000_000_000_000_000_000n)
    .describe("the most one top-up moves from the admin payer to a payer"),
  PRICE_WRITE_CENTS: integer(0, 1_000_000)
    .default(PRICES.managementWriteCents)
    .describe("what the relayer charges for a write; shown in the attested config document"),
  PRICE_RUN_SECOND_CENTS: integer(0, 1_000_000)
    .default(PRICES.runSecondCents)
    .describe("what the relayer charges for a started second of a run; shown in the attested config document"),
  FETCHER_UID: integer(1_000, 4_000_000_000)
    .default(61_199)
    .describe(
      "user id of the fetcher, which makes the outgoing requests of actions; used when the executor is started as root",
    ),
  KEY_SET_FETCHER_UID: integer(1_000, 4_000_000_000)
    .default(61_198)
    .describe(
      "user id of the process that only fetches key sets of identity providers; used when " +
        "the executor is started as root",
    ),
  SANDBOX_FIRST_UID: integer(1_000, 4_000_000_000)
    .default(61_200)
    .describe(
      "first of the 16384 user ids that children which run actions may get, one each; used when the executor is " +
        "started as root",
    ),
};
/** Every variable with its description, including limits of runs. */
export const EXECUTOR_VARIABLES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(VARIABLES).map(([name, schema]) => [name, schema.description ?? ""])),
  ...Object.fromEntries(
    LIMIT_NAMES.map((name) => [
      limitVariable(name),
      `a limit of each run, \`${name}\` of /limits; default ${RUN_LIMITS[name]}, at most ${LIMIT_CEILINGS[name]}`,
    ]),
  ),
};

type Values = { [Name in keyof typeof VARIABLES]: z.output<(typeof VARIABLES)[Name]> };

/** Variables that contain a provider's API key or that child processes have no use for. */
const REMOVED_AFTER_READING = [
  "RPC_URLS",
  "EVENT_RPC_URLS",
  "DSTACK_ENDPOINT",
  "ROOT_KEY_FILE",
  "KUBO_RPC_URL",
  "IPFS_GATEWAYS",
  "MODULE_ORIGIN",
  "ACTION_RPC_URLS",
  "IDENTITY_ISSUERS",
  "EXECUTOR_SOCKET",
  "DATA_DIR",
];

type Derived = "CHAIN_ID" | "CONTRACT_ADDRESS" | "DEPLOYMENT_FILE" | "MAX_HEAD_AGE_SECONDS" | "DRAIN_SECONDS";

export interface Config extends Omit<Values, Derived>, DeploymentSettings {
  readonly production: boolean;
  readonly maxHeadAgeSeconds: number;
  readonly drainMs: number;
  readonly maxGasWeiPerHour: bigint;
  readonly leaseDepth: LeaseDepth;
  readonly limits: RunLimits;
  readonly prices: Prices;
}

/** What a keyholder needs that has no contract yet. */
const ROOT_VARIABLES = [
  ...(["NODE_ENV", "LOG_LEVEL", "EXECUTOR_SOCKET", "EXECUTOR_SOCKET_GROUP"] as const),
  ...(["TEE", "DSTACK_ENDPOINT", "ROOT_KEY_FILE", "DATA_DIR"] as const),
];
export type RootConfig = Pick<Values, (typeof ROOT_VARIABLES)[number]> & Pick<Config, "production">;

/** The settings of a keyholder without a contract; undefined when one is named. @throws ConfigError. */
export function readRootConfig(environment: Environment = process.env): RootConfig | undefined {
  if (environment.CONTRACT_ADDRESS !== "none") return undefined;
  const problems: string[] = [];
  const values = readVariables(environment, problems, ROOT_VARIABLES);
  for (const name of REMOVED_AFTER_READING) Reflect.deleteProperty(environment, name);
  if (values === undefined) throw new ConfigError(problems);
  const config = { ...values, production: values.NODE_ENV === "production" };
  problems.push(...rootConflicts(config), ...(config.production ? rootNotForProduction(config) : []));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/**
 * Reads and validates `environment`, and removes what children must not see. @throws ConfigError naming every problem.
 */
export function readConfig(environment: Environment = process.env): Config {
  const problems: string[] = [];
  const values = readVariables(environment, problems, Object.keys(VARIABLES) as (keyof Values)[]);
  const limits = readLimits(environment, problems);
  for (const name of REMOVED_AFTER_READING) Reflect.deleteProperty(environment, name);
  if (values === undefined) throw new ConfigError(problems);
  const { CHAIN_ID, CONTRACT_ADDRESS, DEPLOYMENT_FILE: path } = values;
  const file = path === undefined ? undefined : { path, read: () => readFileSync(path, "utf8") };
  const network = deploymentSettings({ chainId: CHAIN_ID, contractAddress: CONTRACT_ADDRESS, file }, problems);
  if (network === undefined || problems.length > 0) throw new ConfigError(problems);
  const config = assemble(values, network, limits);
  problems.push(...conflicts(config), ...(config.production ? notForProduction(config) : []));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function readVariables<Name extends keyof Values>(
  environment: Environment,
  problems: string[],
  names: readonly Name[],
): Pick<Values, Name> | undefined {
  const entries = names.map((name) => {
    const schema = VARIABLES[name];
    const parsed = schema.safeParse(environment[name] === "" ? undefined : environment[name]);
    if (!parsed.success)
      problems.push(`${name} ${whatIsWrong(parsed.error, environment[name])} (${schema.description ?? ""})`);
    return [name, parsed.data];
  });
  return problems.length === 0 ? (Object.fromEntries(entries) as Pick<Values, Name>) : undefined;
}

function whatIsWrong(error: z.ZodError, value: string | undefined): string {
  if (value === undefined || value === "") return "is needed";
  const issue = error.issues[0];
  return issue === undefined
    ? "is wrong"
    : [issue.path.join("."), issue.message].filter((part) => part !== "").join(": ");
}

function readLimits(environment: Environment, problems: string[]): RunLimits {
  const entries = LIMIT_NAMES.map((name) => [name, readLimit(environment, name, problems)] as const);
  return Object.fromEntries(entries) as Record<LimitName, number>;
}

function readLimit(environment: Environment, name: LimitName, problems: string[]): number {
  const text = environment[limitVariable(name)];
  if (text === undefined || text === "") return RUN_LIMITS[name];
  const parsed = integer(1, LIMIT_CEILINGS[name]).safeParse(text);
  if (!parsed.success)
    problems.push(`${limitVariable(name)} must be a whole number between 1 and ${LIMIT_CEILINGS[name]}`);
  return parsed.data ?? RUN_LIMITS[name];
}

function assemble(values: Values, network: DeploymentSettings, limits: RunLimits): Config {
  const headAge =
    network.chainId === DEVELOPMENT_CHAIN_ID && values.NODE_ENV !== "production" ? 0 : DEFAULT_MAX_HEAD_AGE_SECONDS;
  return {
    ...values,
    ...network,
    production: values.NODE_ENV === "production",
    maxHeadAgeSeconds: values.MAX_HEAD_AGE_SECONDS ?? headAge,
    drainMs:
      1_000 *
      (values.DRAIN_SECONDS ?? DEFAULT_DRAIN_SECONDS[values.NODE_ENV === "production" ? "production" : "development"]),
    maxGasWeiPerHour:
      values.MAX_GAS_WEI_PER_HOUR ??
      DEFAULT_GAS_WEI_PER_HOUR[values.NODE_ENV === "production" ? "production" : "development"],
    leaseDepth: leaseDepthOf(network.chainId, values.LEASE_CONFIRMATIONS),
    limits,
    prices: { managementWriteCents: values.PRICE_WRITE_CENTS, runSecondCents: values.PRICE_RUN_SECOND_CENTS },
  };
}

function conflicts(config: Config): string[] {
  const problems: string[] = [];
  if (config.RPC_QUORUM > config.RPC_URLS.length)
    problems.push(`RPC_QUORUM is ${config.RPC_QUORUM}, but RPC_URLS names only ${config.RPC_URLS.length}`);
  if (different(config.RPC_URLS) < config.RPC_URLS.length)
    problems.push("RPC_URLS names an endpoint twice; the second would only repeat the first");
  problems.push(...eventConflicts(config), ...rootConflicts(config), ...sharedUsers(config));
  const issuers = config.IDENTITY_ISSUERS.map(({ issuer: name }) => name);
  if (new Set(issuers).size < issuers.length) problems.push("IDENTITY_ISSUERS names an issuer twice");
  return problems;
}

/** Also one that is written in two ways must not count twice towards a quorum. */
const different = (urls: readonly string[]): number => new Set(urls.map((url) => new URL(url).href)).size;

function eventConflicts({ EVENT_RPC_URLS, RPC_QUORUM, chainId }: Config): string[] {
  const few = [...EVENT_RPC_URLS].filter(([, urls]) => different(urls) < Math.max(RPC_QUORUM, urls.length));
  return [
    ...few.map(([id]) => `EVENT_RPC_URLS needs RPC_QUORUM=${RPC_QUORUM} different endpoints of chain ${id}`),
    ...(EVENT_RPC_URLS.has(Number(chainId)) ? ["EVENT_RPC_URLS is for other chains than the account's"] : []),
  ];
}

function rootConflicts({ TEE, DSTACK_ENDPOINT, ROOT_KEY_FILE }: RootConfig): string[] {
  if (TEE === "none") return [];
  return [
    ...(DSTACK_ENDPOINT === undefined ? [`TEE=${TEE} needs DSTACK_ENDPOINT`] : []),
    ...(ROOT_KEY_FILE === undefined ? [] : [`TEE=${TEE} provides the root key: unset ROOT_KEY_FILE`]),
  ];
}

/** Each process has its own user and a group with the same number; the group of the socket must be none of these. */
function sharedUsers({ FETCHER_UID, KEY_SET_FETCHER_UID, SANDBOX_FIRST_UID, EXECUTOR_SOCKET_GROUP }: Config): string[] {
  const end = SANDBOX_FIRST_UID + SANDBOX_UIDS;
  const others = Object.entries({ FETCHER_UID, KEY_SET_FETCHER_UID, EXECUTOR_SOCKET_GROUP }).filter(
    ([, id]) => id !== undefined,
  ) as [string, number][];
  const inside = others.filter(([, id]) => id >= SANDBOX_FIRST_UID && id < end);
  const problems = inside.map(
    ([name, id]) => `${name}=${id} lies in the children's range: SANDBOX_FIRST_UID to ${end - 1}`,
  );
  const isShared = new Set(others.map(([, id]) => id)).size < others.length;
  return isShared ? [...problems, `${others.map(([name]) => name).join(", ")} must differ`] : problems;
}

/** Development settings that production refuses. The sandbox's isolation level is checked when the pool starts. */
function notForProduction(config: Config): string[] {
  const problems = rootNotForProduction(config);
  if (config.maxHeadAgeSeconds === 0)
    problems.push("production refuses MAX_HEAD_AGE_SECONDS=0: a stopped chain must not decide");
  if (config.FETCH_ALLOW_HOSTS !== undefined)
    problems.push("production refuses FETCH_ALLOW_HOSTS: actions must not reach private addresses");
  if (config.WEBHOOK_ALLOW_HOSTS !== undefined)
    problems.push("production refuses WEBHOOK_ALLOW_HOSTS: webhooks must be at public addresses");
  if (config.IDENTITY_ISSUERS.some(({ jwksUrl }) => !jwksUrl.startsWith("https:")))
    problems.push("production needs https for every jwksUrl of IDENTITY_ISSUERS");
  const urls = [...config.RPC_URLS, ...[...config.EVENT_RPC_URLS.values()].flat()];
  if (urls.some((url) => !isTrustedTransport(url)))
    problems.push("production needs https (or loopback) for every one of RPC_URLS and EVENT_RPC_URLS");
  return problems;
}

function rootNotForProduction(config: RootConfig): string[] {
  const problems: string[] = [];
  if (config.TEE !== "dstack")
    problems.push(`production needs TEE=dstack (it is ${config.TEE}): only a real TEE keeps the root key`);
  if (config.ROOT_KEY_FILE !== undefined)
    problems.push("production refuses ROOT_KEY_FILE: the root key comes from the TEE");
  if (config.DSTACK_ENDPOINT !== undefined && !isAbsolute(config.DSTACK_ENDPOINT)) {
    problems.push(
      "production needs DSTACK_ENDPOINT to be a path: the root key travels over the guest agent's Unix socket only",
    );
  }
  if (config.EXECUTOR_SOCKET_GROUP === undefined)
    problems.push("production needs EXECUTOR_SOCKET_GROUP: the group shared with the relayer alone");
  return problems;
}

function isTrustedTransport(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || hostname === "127.0.0.1" || hostname === "[::1]" || hostname === "localhost";
}

function isNameServer(text: string): boolean {
  try {
    new Resolver().setServers([text]);
    return true;
  } catch {
    return false;
  }
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function requireJson(text: string, context: z.RefinementCtx): unknown {
  const value = parseJson(text);
  if (value === undefined) context.addIssue({ code: "custom", message: "must be JSON" });
  return value;
}
