/**
 * All settings the relayer reads from its environment, validated before anything starts: an invalid value stops the
 * start with what to fix.
 * Source: docs/operations.md.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { eventChainsSchema } from "../protocol/eventChains";
import { deploymentSettings, type DeploymentSettings } from "../protocol/deployment";
import type { ChainTuning } from "./chain";
import { parseAddress } from "../protocol/ids";
import { MIB, PRICES, RATE_LIMITS, type RateLimits } from "../protocol/limits";
import { DEFAULT_SERVICE_NAME, SERVICE_NAME_PATTERN } from "../protocol/serviceName";
import { defined } from "../protocol/defined";

const whole = (min: number, max: number): z.ZodType<number, unknown> =>
  z.coerce.number("must be a number").int().min(min).max(max);
const wei = z
  .string()
  .regex(/^[1-9][0-9]{0,29}$/, "must be a number of wei, in digits")
  .transform(BigInt);
const empty = z.literal("").transform(() => undefined);
const text = z.string().trim().min(1);
const optionalText = empty.or(text).optional();
const port = whole(0, 65_535);

const environment = z.object({
  NODE_ENV: z
    .enum(["development", "test", "production"])
    .default("production")
    .describe("production refuses every convenience of development"),
  SERVICE_NAME: z
    .string()
    .regex(SERVICE_NAME_PATTERN, "letters and digits, starting with a letter")
    .default(DEFAULT_SERVICE_NAME)
    .describe("names the typed-data domain and one route"),
  HOST: text.default("127.0.0.1").describe("address to listen on"),
  PORT: port.default(8000).describe("port of the API"),
  METRICS_PORT: port.default(9464).describe("port of /metrics, on the same host"),
  LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
    .default("info")
    .describe("least severe line to log"),
  RPC_URLS: text
    .transform((urls) => urls.split(",").map((url) => url.trim()))
    .pipe(z.array(z.url({ protocol: /^https?$/ })).min(1))
    .describe("RPC endpoints of the chain, separated by commas, in order of preference"),
  EVENT_RPC_URLS: eventChainsSchema.describe(
    "further chains whose logs may fire triggers, with endpoints as for the executor: 10=https://…,https://… 8453=…",
  ),
  DEPLOYMENT_FILE: optionalText.describe("deployments/<network>.json; gives CHAIN_ID and CONTRACT_ADDRESS"),
  CHAIN_ID: whole(1, Number.MAX_SAFE_INTEGER).optional().describe("id of the chain"),
  CONTRACT_ADDRESS: z
    .string()
    .refine((value) => parseAddress(value) !== undefined, "must be an address")
    .optional()
    .describe("the account contract"),
  EXECUTOR_SOCKET: text.describe("the executor's Unix socket"),
  DATABASE_URL: optionalText.describe(
    "PostgreSQL; needed in production, where the embedded database's lack of fsync is not acceptable",
  ),
  ADDRESS_HASH_KEY: optionalText.describe(
    "secret key of the hashes that stand for client addresses in the store, the same for all relayers; " +
      "DATABASE_URL unless set",
  ),
  DATA_DIR: optionalText.describe("folder of the embedded database; without it everything is in memory"),
  STRIPE_SECRET_KEY: optionalText.describe(
    "without it billing routes answer 503 and metered routes fail closed in production",
  ),
  STRIPE_PUBLISHABLE_KEY: optionalText.describe("the processor's key for browsers"),
  STRIPE_WEBHOOK_SECRET: optionalText.describe("checks the signature of webhooks"),
  STRIPE_API_BASE: empty
    .or(z.url())
    .optional()
    .describe("another address of the payment processor's API: for development and tests"),
  SIGNUP_CREDIT_CENTS: whole(0, 1_000_000)
    .optional()
    .describe("credit each account gets once; 2000 in development, 0 in production"),
  SIGNUP_DAILY_CAP_CENTS: whole(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe("most signup credit a day, over all accounts; production needs it with SIGNUP_CREDIT_CENTS"),
  PAYER_COUNT: whole(0, 1024).default(4).describe("API payers (lanes) this deployment uses"),
  CONFIRMATIONS_BEFORE_ANSWER: whole(1, 1000)
    .default(1)
    .describe("blocks on top of a write, its own included, before it is answered"),
  FINALITY_DEPTH: whole(1, 10_000)
    .optional()
    .describe("blocks on top of one before it is taken as final; a default for each known network"),
  STUCK_AFTER_SECONDS: whole(1, 3_600)
    .optional()
    .describe("a transaction not mined after this time gets higher fees; a default for each known network"),
  MAX_FEE_PER_GAS_WEI: wei
    .optional()
    .describe("no higher fee per gas is ever offered; a default for each known network. The executor has its own"),
  TOP_UP_BELOW_WEI: wei.optional().describe("a payer with less is topped up; more where gas costs more"),
  TOP_UP_TO_WEI: wei.optional().describe("what a payer is topped up to; more where gas costs more"),
  MAX_TOP_UP_WEI: wei.optional().describe("the most one top-up moves: the same value as the executor's"),
  MAX_TRANSACTION_GAS: whole(21_000, 1_000_000_000)
    .optional()
    .describe("the most gas one transaction may use; 16777216, as EIP-7825 has it"),
  EVIDENCE_DIR: optionalText.describe("folder with the TLS evidence files; without it /evidences answers 503"),
  TRUSTED_PROXY_HOPS: whole(0, 16).default(0).describe("proxies in front whose X-Forwarded-For entries are trusted"),
  RATE_LIMIT_ADDRESS_PER_SECOND: whole(1, 1_000_000).optional().describe("requests a second per address, of any kind"),
  RATE_LIMIT_STRANGERS_PER_MINUTE: whole(1, 1_000_000)
    .optional()
    .describe("unknown or invalid credentials a minute per address"),
  RATE_LIMIT_HEAVY_PER_MINUTE: whole(1, 1_000_000).optional().describe("quotes and CIDs of code a minute per address"),
  RATE_LIMIT_PAYMENTS_PER_MINUTE: whole(1, 1_000_000)
    .optional()
    .describe("payment intents a minute per account, and as many by its usage keys"),
  RATE_LIMIT_MINTS_PER_MINUTE: whole(1, 1_000_000)
    .optional()
    .describe("new accounts and signature mints a minute per address"),
  RATE_LIMIT_MINTS_PER_DAY: whole(1, 1_000_000_000)
    .optional()
    .describe("new accounts and signature mints in any 24 hours over all addresses, half of them at once"),
  RATE_LIMIT_FREE_WRITES_PER_DAY: whole(1, 1_000_000)
    .optional()
    .describe("writes a day per account that are carried out although it has no credit: freezing, revoking, leaving"),
  RATE_LIMIT_KEY_PER_SECOND: whole(1, 1_000_000).optional().describe("requests a second per key"),
  DRAIN_NOTICE_SECONDS: whole(0, 300)
    .optional()
    .describe("seconds for which /ready answers 503 before connections are refused; 5 in production, else 0"),
  RUN_RECORDS_DAYS: whole(1, 3_650).default(90).describe("days that records of runs (list_runs, usage) are kept"),
  DETAIL_DAYS: whole(1, 3_650)
    .default(7)
    .describe(
      "days that the bytes of final writes, closed reservations and messages of failed runs are kept; the ledger is " +
        "kept permanently",
    ),
  SHARED_CODE_MIB: whole(0, 1_000_000)
    .refine((mib) => mib === 0 || mib >= 1_024, "must be 0 or at least 1024")
    .optional()
    .describe(
      "how much code by CID the store keeps for all machines, in MiB; an account's share is a 64th; 0 keeps none; " +
        "4096, and 0 with the embedded database, which serves one machine",
    ),
  SHARED_CODE_DAYS: whole(1, 3_650)
    .default(90)
    .describe("days that code by CID which no run names is kept for all machines"),
  PRICE_WRITE_CENTS: whole(0, 1_000_000)
    .default(PRICES.managementWriteCents)
    .describe("price of a management write in US cents"),
  PRICE_RUN_SECOND_CENTS: whole(0, 1_000_000)
    .default(PRICES.runSecondCents)
    .describe("price of a started second of execution in US cents"),
});
type Environment = z.infer<typeof environment>;

/** Every variable with its description. */
export const RELAYER_VARIABLES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(environment.shape).map(([name, schema]) => [name, schema.description ?? ""]),
);

const SIGNUP_CREDIT_IN_DEVELOPMENT = 2_000;

export type Config = Readonly<DeploymentSettings & ReturnType<typeof configOf>>;

/** @throws Error naming every variable that is wrong and what it should be. */
export function loadConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  // A compose file passes unset variables as empty strings.
  const parsed = environment.safeParse(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== "")));
  if (!parsed.success)
    throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`));
  const values = parsed.data;
  const production = values.NODE_ENV === "production";
  const problems = [...paymentProblems(values), ...(production ? productionProblems(values) : [])];
  const { CHAIN_ID, CONTRACT_ADDRESS, DEPLOYMENT_FILE: path } = values;
  const file = path === undefined ? undefined : { path, read: () => readFileSync(path, "utf8") };
  const deployment = deploymentSettings({ chainId: CHAIN_ID, contractAddress: CONTRACT_ADDRESS, file }, problems);
  if (problems.length > 0 || deployment === undefined) throw new ConfigError(problems);
  return { ...deployment, ...configOf(values, production) };
}

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly problems: readonly string[]) {
    super(`Invalid configuration:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
  }
}

function configOf(values: Environment, production: boolean) {
  return {
    production,
    serviceName: values.SERVICE_NAME,
    host: values.HOST,
    port: values.PORT,
    metricsPort: values.METRICS_PORT,
    logLevel: values.LOG_LEVEL,
    rpcUrls: values.RPC_URLS,
    /** Further chains whose logs fire triggers. */
    eventChains: values.EVENT_RPC_URLS,
    executorSocket: values.EXECUTOR_SOCKET,
    databaseUrl: values.DATABASE_URL,
    /** Secret. */
    addressHashKey: values.ADDRESS_HASH_KEY ?? values.DATABASE_URL ?? "embedded store",
    dataDir: values.DATA_DIR,
    stripe: {
      secretKey: values.STRIPE_SECRET_KEY,
      publishableKey: values.STRIPE_PUBLISHABLE_KEY,
      webhookSecret: values.STRIPE_WEBHOOK_SECRET,
      apiBase: values.STRIPE_API_BASE,
    },
    signup: {
      creditCents: values.SIGNUP_CREDIT_CENTS ?? (production ? 0 : SIGNUP_CREDIT_IN_DEVELOPMENT),
      dailyCapCents: values.SIGNUP_DAILY_CAP_CENTS,
    },
    payerCount: values.PAYER_COUNT,
    confirmations: values.CONFIRMATIONS_BEFORE_ANSWER,
    /** Overrides the network's defaults. */
    chainTuning: chainTuningOf(values),
    evidenceDir: values.EVIDENCE_DIR,
    trustedProxyHops: values.TRUSTED_PROXY_HOPS,
    rateLimits: rateLimitsOf(values, production),
    prices: { managementWriteCents: values.PRICE_WRITE_CENTS, runSecondCents: values.PRICE_RUN_SECOND_CENTS },
    runRecordsDays: values.RUN_RECORDS_DAYS,
    detailDays: values.DETAIL_DAYS,
    sharedCode: { totalBytes: sharedCodeMib(values) * MIB, days: values.SHARED_CODE_DAYS },
    drainNoticeSeconds: values.DRAIN_NOTICE_SECONDS ?? (production ? 5 : 0),
  };
}

/** The embedded database works in the relayer's own event loop: to store 16 MiB there holds it for six seconds. */
const sharedCodeMib = ({ SHARED_CODE_MIB, DATABASE_URL }: Environment): number =>
  SHARED_CODE_MIB ?? (DATABASE_URL === undefined ? 0 : 4_096);

function rateLimitsOf(values: Environment, production: boolean): RateLimits {
  const rates = RATE_LIMITS[production ? "production" : "development"];
  return {
    addressRequestsPerSecond: values.RATE_LIMIT_ADDRESS_PER_SECOND ?? rates.addressRequestsPerSecond,
    unknownCredentialsPerMinutePerAddress:
      values.RATE_LIMIT_STRANGERS_PER_MINUTE ?? rates.unknownCredentialsPerMinutePerAddress,
    heavyPerMinutePerAddress: values.RATE_LIMIT_HEAVY_PER_MINUTE ?? rates.heavyPerMinutePerAddress,
    paymentIntentsPerMinute: values.RATE_LIMIT_PAYMENTS_PER_MINUTE ?? rates.paymentIntentsPerMinute,
    mintsPerMinutePerAddress: values.RATE_LIMIT_MINTS_PER_MINUTE ?? rates.mintsPerMinutePerAddress,
    mintsPerDay: values.RATE_LIMIT_MINTS_PER_DAY ?? rates.mintsPerDay,
    freeWritesPerDay: values.RATE_LIMIT_FREE_WRITES_PER_DAY ?? rates.freeWritesPerDay,
    freeChangesPerDay: rates.freeChangesPerDay,
    keyRequestsPerSecond: values.RATE_LIMIT_KEY_PER_SECOND ?? rates.keyRequestsPerSecond,
  };
}

function chainTuningOf(values: Environment): Partial<ChainTuning> {
  const { FINALITY_DEPTH, STUCK_AFTER_SECONDS, MAX_FEE_PER_GAS_WEI } = values;
  const { TOP_UP_BELOW_WEI, TOP_UP_TO_WEI, MAX_TOP_UP_WEI, MAX_TRANSACTION_GAS } = values;
  return defined({
    finalityDepth: FINALITY_DEPTH,
    stuckAfterMs: msOf(STUCK_AFTER_SECONDS),
    maxFeeCapWei: MAX_FEE_PER_GAS_WEI,
    topUpBelowWei: TOP_UP_BELOW_WEI,
    topUpToWei: TOP_UP_TO_WEI,
    maxTopUpWei: MAX_TOP_UP_WEI,
    maxTransactionGas: MAX_TRANSACTION_GAS === undefined ? undefined : BigInt(MAX_TRANSACTION_GAS),
  });
}

const msOf = (seconds: number | undefined): number | undefined => seconds && seconds * 1_000;

/** All three or none: without the webhook, a payment whose tab was closed would be credited late. */
function paymentProblems({ STRIPE_SECRET_KEY, STRIPE_PUBLISHABLE_KEY, STRIPE_WEBHOOK_SECRET }: Environment): string[] {
  const given = { STRIPE_SECRET_KEY, STRIPE_PUBLISHABLE_KEY, STRIPE_WEBHOOK_SECRET };
  const missing = Object.entries(given).filter(([, value]) => value === undefined);
  if (missing.length === 0 || missing.length === 3) return [];
  return missing.map(([name]) => `${name}: needed beside the other STRIPE_ keys; give all three or none`);
}

function productionProblems(values: Environment): string[] {
  const problems: string[] = [];
  if (values.DATABASE_URL === undefined)
    problems.push("DATABASE_URL: production needs PostgreSQL; the embedded database does not survive a power loss");
  if ((values.SIGNUP_CREDIT_CENTS ?? 0) > 0 && values.SIGNUP_DAILY_CAP_CENTS === undefined) {
    problems.push("SIGNUP_DAILY_CAP_CENTS: needed in production when SIGNUP_CREDIT_CENTS is not 0");
  }
  if (values.STRIPE_API_BASE !== undefined) problems.push("STRIPE_API_BASE: for development and tests only");
  return problems;
}
