/** Starts the relayer: store, credits, chain, executor client, HTTP API, metrics; drains on SIGTERM. */
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { sql } from "kysely";
import { shareConnections } from "../protocol/connections";
import { TYPED_DATA_VERSION, domainName } from "../protocol/typedData";
import { Secret } from "../protocol/secret";
import type { Address } from "../protocol/ids";
import { createApp } from "./app";
import { openChain, type ChainOptions } from "./chain";
import type { Chain } from "./chain/types";
import { takeMemory } from "./bodyMemory";
import { BudgetLeases } from "./budgetLeases";
import { cidsBeside } from "./cids";
import { ConfigError, loadConfig, type Config } from "./config";
import { Credits } from "./credits";
import { Audit, type AuditFigures } from "./credits/audit";
import { PeriodicTask } from "./periodicTask";
import { openDashboard } from "./site/dashboard";
import { EvidenceFolder } from "./site/evidences";
import { ExecutorClient, type Executor } from "./executor/client";
import { cachedInfo, readinessProblems } from "./health";
import { createLogger, type Logger } from "../protocol/log";
import { CountedRequest } from "../protocol/pieces";
import { useFastKeccak } from "../protocol/keccak";
import { endUnreadAnswers } from "../protocol/unreadAnswers";
import { Metrics } from "./metrics";
import { cardDouble } from "./middleware/cardDouble";
import { clientAddress } from "./middleware/context";
import { Authentication } from "./middleware/credentials";
import { Idempotency } from "./middleware/idempotency";
import { RequestLimits } from "./middleware/rateLimits";
import { buildOpenApi, descriptionFile } from "./site/openapi";
import { createHandlers, type HandlerDeps } from "./routes";
import { BudgetStore } from "./store/budgets";
import { createIdempotencyStore, type IdempotencyStore } from "./store/idempotency";
import { CodeSharingExecutor } from "./executor/sharedCode";
import { openStore, type Store } from "./store";
import { Instance } from "./store/instance";
import { KnownCids } from "./store/knownCids";
import { dropOld } from "./store/retention";
import { storeCounts } from "./store/mintCounts";
import { dropExpiredRates, fleetingLimiter, storeLimiter } from "./store/rateLimits";
import { SharedCodeStore } from "./store/sharedCode";
import { openTriggers, type TriggersNeeds } from "./triggers/open";
import { openDocs } from "./site/docs";
import { openPackages } from "./site/packages";
import { openViewer } from "./site/viewer";
import { lateness, startWebhooks, Webhooks } from "./webhooks";

const API_VERSION = "1.0.0";
/** The longest a write may take to be answered, plus a margin. */
const DRAIN_MS = 35_000;
const DRAIN_SWEEP_MS = 50;
const UNREAD_MS = 60_000;
/** Above what the ingress lets in; an idle one takes some ten kilobytes. */
const MAX_CONNECTIONS = 8_192;
const CATCH_UP_MS = 500;
const AUDIT_MS = 5_000;
const HOUSEKEEPING_MS = 60 * 60_000;
const TRIMMING_MS = 5 * 60_000;
const RATES_MS = 5 * 60_000;
const VACUUM_MS = 30_000;

/** Readiness is withdrawn first: load balancers stop sending while everything is still served. */
const drain = { isOn: false };

/** The running parts; stopped in reverse order of their start. */
class Running {
  readonly #parts: { readonly name: string; readonly stop: () => Promise<unknown> }[] = [];
  add(name: string, stop: () => Promise<unknown>): void {
    this.#parts.unshift({ name, stop });
  }
  repeat(name: string, work: () => Promise<unknown>, everyMs: number, onError: (error: unknown) => void): void {
    const task = new PeriodicTask(work, everyMs, onError);
    task.start();
    this.add(name, () => task.stop());
  }
  async stop(log: Logger): Promise<void> {
    for (const { name, stop } of this.#parts.splice(0)) {
      await stop().catch((error: unknown) => log.error({ err: error, part: name }, "a part did not stop cleanly"));
    }
  }
}

async function start(config: Config, log: Logger, running: Running): Promise<void> {
  await useFastKeccak();
  const store = await openStore({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    onIdleError: (error) => log.warn({ err: error }, "database"),
  });
  running.add("store", () => store.close());
  const instance = new Instance({
    db: store.db,
    storeIsOurs: store.kind === "pglite",
    lockOf: store.lockOf,
    onError: (error) => log.error({ err: error }, "the lease could not be renewed"),
  });
  await instance.start();
  running.add("instance", () => instance.stop());
  const client = openClient(config, running);
  const sharedCode = new SharedCodeStore(store.db, config.sharedCode);
  const onError = (error: unknown): void => log.warn({ err: error }, "code by CID could not be shared");
  const isShared = config.sharedCode.totalBytes > 0;
  const executor = isShared ? new CodeSharingExecutor(client, sharedCode, takeMemory, onError) : client;
  const metrics = new Metrics();
  const credits = startCredits(config, log, store, instance.id);
  running.add("credits", () => credits.stop());
  const chain = await openChain(
    chainOptions(config, log, { store, instanceId: instance.id, executor, credits, metrics }),
  );
  running.add("chain", () => chain.close());
  running.add("leases of budgets", startLeases(config, log, { store, executor, credits, chain }));
  running.add("webhooks", startWebhookWork(log, { store, executor, chain, metrics }));
  watchParts(metrics, { store, chain, credits });
  metrics.watchLedger(startAudit(log, store, running));
  metrics.watchPool(async () => (await executor.call("info", {})).pool);
  startHousekeeping(config, store, sharedCode, log, running);

  const executorInfo = cachedInfo(executor);
  const { chainId, eventChains, serviceName } = config;
  const onChain = { chain, chainId, eventChains };
  const triggerNeeds = { db: store.db, instanceId: instance.id, executor, executorInfo, credits, metrics, ...onChain };
  const triggers = await startTriggers(triggerNeeds, log, running);
  const typedDataDomain = { name: domainName(serviceName), version: TYPED_DATA_VERSION, chainId } as const;
  const app = createApp({
    handlers: createHandlers(
      handlerDeps(config, log, { store, executor, executorInfo, credits, chain, metrics, triggers, typedDataDomain }),
    ),
    authentication: new Authentication({ chain, executor, typedDataDomain }),
    limits: requestLimits(config, store, instance),
    addressHashKey: config.addressHashKey,
    wasSubmitted: async (actId) => (await chain.submissionByIdempotencyKey(actId)) !== undefined,
    isHook: (id) => triggers.book.isHook(id),
    idempotency: new Idempotency(startIdempotencyStore(log, store, instance.id, running)),
    log,
    serviceName,
    trustedProxyHops: config.trustedProxyHops,
    cardDouble: config.stripe.apiBase === undefined ? undefined : cardDouble(config.stripe.apiBase),
    onAnswered: (facts) => metrics.countRequest(facts),
  });
  running.add("metrics server", await listen(metrics.server(), config.host, config.metricsPort, log));
  const api = apiServer(app.callback(), config.trustedProxyHops);
  running.add("API server", await listen(api, config.host, config.port, log));
  log.info(
    {
      host: config.host,
      port: config.port,
      metricsPort: config.metricsPort,
      chainId: String(config.chainId),
      store: store.kind,
    },
    "the relayer is listening",
  );
}

function watchParts(
  metrics: Metrics,
  { store, chain, credits }: Pick<HandlerNeeds, "store" | "chain" | "credits">,
): void {
  metrics.watchWebhooks(() => lateness(store.db));
  metrics.watchChain(chain);
  metrics.watchEndpoints(chain);
  const { processorCheck } = credits;
  if (processorCheck !== undefined) metrics.watchProcessor(() => processorCheck.figures);
  metrics.watchStore(
    () => store.pool(),
    () => sql`select 1`.execute(store.db),
  );
}

async function startTriggers(
  needs: Omit<TriggersNeeds, "log">,
  log: Logger,
  running: Running,
): Promise<HandlerDeps["triggers"]> {
  const { triggers, stop } = await openTriggers({ ...needs, log: log.child({ component: "triggers" }) });
  running.add("triggers", stop);
  return triggers;
}

function startCredits(config: Config, log: Logger, store: Store, instanceId: string): Credits {
  const { secretKey, publishableKey, webhookSecret, apiBase } = config.stripe;
  const hasKeys = secretKey !== undefined && publishableKey !== undefined && webhookSecret !== undefined;
  const credits = new Credits({
    db: store.db,
    instanceId,
    prices: config.prices,
    signup: {
      cents: config.signup.creditCents,
      dailyCapCents: config.signup.dailyCapCents,
      everyAccount: !config.production,
    },
    payments: hasKeys
      ? { secretKey: new Secret(secretKey), publishableKey, webhookSecret: new Secret(webhookSecret), apiBase }
      : undefined,
    deployment: `${config.chainId}:${config.contractAddress}`,
    onError: (error) => log.error({ err: error }, "credits"),
    onProcessorWrong: (found) => log.error(found, "the ledger and the payment processor differ"),
  });
  credits.start();
  return credits;
}

function requestLimits({ rateLimits }: Config, { db }: Store, instance: Instance): RequestLimits {
  const [budgets, rates] = [storeLimiter(db), fleetingLimiter(db)];
  return new RequestLimits(rateLimits, { budgets, rates, mints: storeCounts(db), instances: () => instance.peers });
}

/** The continuous audit. It reports discrepancies for people to resolve and repairs nothing. */
function startAudit(log: Logger, { db }: Store, running: Running): () => AuditFigures {
  const audit = new Audit({ db, onWrong: (found) => log.error(found, "the books do not hold") });
  const onError = (error: unknown): void => log.warn({ err: error }, "the books could not be checked");
  running.repeat("audit", () => audit.turn(), AUDIT_MS, onError);
  return () => audit.figures;
}

function startWebhookWork(
  log: Logger,
  { store, executor, chain, metrics }: Pick<HandlerNeeds, "store" | "executor" | "chain" | "metrics">,
): () => Promise<void> {
  return startWebhooks({
    db: store.db,
    executor,
    chain,
    onAttempt: (outcome) => metrics.countWebhook(outcome),
    onError: (error) => log.warn({ err: error }, "webhooks"),
  });
}

function openClient({ executorSocket }: Config, running: Running): ExecutorClient {
  const client = new ExecutorClient(executorSocket);
  running.add("executor client", () => client.close());
  return client;
}

function startLeases(
  { prices }: Config,
  log: Logger,
  { store, ...parts }: Pick<HandlerNeeds, "store" | "executor" | "credits" | "chain">,
): () => Promise<void> {
  const leases = new BudgetLeases({ ...parts, budgets: new BudgetStore(store.db), prices, log });
  leases.start();
  return () => leases.stop();
}

/** Retries storing the ends of operations at short intervals: repeated requests wait for it. */
function startIdempotencyStore(log: Logger, { db }: Store, instanceId: string, running: Running): IdempotencyStore {
  const onError = (error: unknown): void =>
    log.warn({ err: error }, "the outcome of a request could not be stored; it is retried");
  const kept = createIdempotencyStore(db, instanceId, onError);
  running.repeat("kept requests", () => kept.catchUp(), CATCH_UP_MS, onError);
  return kept;
}

interface ChainNeeds {
  readonly store: Store;
  readonly instanceId: string;
  readonly executor: Executor;
  readonly credits: Credits;
  readonly metrics: Metrics;
}

/** Credits change in the same database transactions as submissions; chain and credits do not depend on each other. */
function chainOptions(
  config: Config,
  log: Logger,
  { store, instanceId, executor, credits, metrics }: ChainNeeds,
): ChainOptions {
  return {
    db: store.db,
    storeIsOurs: store.kind === "pglite",
    instanceId,
    executor,
    log: log.child({ component: "chain" }),
    rpcUrls: config.rpcUrls,
    chainId: config.chainId,
    contractAddress: config.contractAddress as Address,
    deploymentBlock: config.contractBlock,
    payerCount: config.payerCount,
    confirmationsBeforeAnswer: config.confirmations,
    tuning: config.chainTuning,
    onExchange: (facts) => metrics.countExchange(facts),
    hooks: {
      onBegin: (submissionIds, trx) => credits.reservations.bindWrites(submissionIds, trx),
      onOutcome: async (outcomes, trx) => {
        await credits.reservations.endWrites(outcomes, trx);
        for (const { charged, isUndone } of outcomes) if (isUndone !== true) metrics.countOutcome(charged);
      },
      onAbandon: (submissionId) => credits.reservations.abandonWrite(submissionId),
    },
  };
}

interface HandlerNeeds {
  readonly store: Store;
  readonly executor: Executor;
  readonly credits: Credits;
  readonly chain: Chain;
  readonly metrics: Metrics;
  readonly executorInfo: HandlerDeps["executorInfo"];
  readonly triggers: HandlerDeps["triggers"];
  readonly typedDataDomain: HandlerDeps["typedDataDomain"];
}

function handlerDeps(
  config: Config,
  log: Logger,
  { store, executor, executorInfo, credits, chain, metrics, triggers, typedDataDomain }: HandlerNeeds,
): HandlerDeps {
  const { serviceName, prices, rateLimits, evidenceDir, stripe } = config;
  const known = new KnownCids(store.db);
  return {
    chain,
    credits,
    executor,
    webhooks: new Webhooks({ db: store.db, executor, httpsOnly: config.production }),
    executorInfo,
    triggers,
    budgets: new BudgetStore(store.db),
    // A list without a CID is a small loss; a confirmed write must not be answered as failed.
    cids: {
      remember: (cids) =>
        known.remember(cids).catch((error: unknown) => log.warn({ err: error }, "CIDs were not remembered")),
      lookUp: (hashes) => known.lookUp(hashes),
    },
    cidOf: cidsBeside(),
    onRan: (facts) => metrics.countRun(facts),
    log,
    serviceName,
    typedDataDomain,
    prices,
    rateLimits,
    evidences: evidenceDir === undefined ? undefined : new EvidenceFolder(evidenceDir),
    dashboard: openDashboard({
      folder: join(__dirname, "..", "dashboard"),
      serviceName,
      cardForm: stripe.apiBase === undefined ? "stripe" : "double",
    }),
    problems: async () =>
      drain.isOn ? ["The service is shutting down."] : readinessProblems({ chain, executor, db: store.db }),
    description: descriptionFile(buildOpenApi(serviceName, API_VERSION)),
    viewer: openViewer(serviceName),
    docs: openDocs(serviceName),
    packages: openPackages(join(__dirname, "..", "packages")),
  };
}

/** Idempotent requests and rate windows expire on their own; their rows are deleted periodically. */
function startHousekeeping(
  { detailDays, runRecordsDays }: Config,
  { db, vacuum }: Store,
  sharedCode: SharedCodeStore,
  log: Logger,
  running: Running,
): void {
  const onError = (error: unknown): void => log.warn({ err: error }, "housekeeping");
  running.repeat("housekeeping", () => dropOld(db, { detailDays, runRecordsDays }), HOUSEKEEPING_MS, onError);
  running.repeat("rate windows", () => dropExpiredRates(db), RATES_MS, onError);
  if (vacuum !== undefined) running.repeat("vacuum", () => vacuum(), VACUUM_MS, onError);
  const onUntrimmed = (error: unknown): void => log.warn({ err: error }, "shared code could not be trimmed");
  running.repeat("shared code", () => sharedCode.trim(), TRIMMING_MS, onUntrimmed);
}

function apiServer(callback: Parameters<typeof createServer>[1], trustedProxyHops: number): Server {
  // Time limit for receiving a request, so that slow senders cannot hold connections indefinitely.
  const server = createServer(
    {
      IncomingMessage: CountedRequest,
      requestTimeout: 60_000,
      headersTimeout: 20_000,
      keepAliveTimeout: 65_000,
      noDelay: true,
    },
    callback,
  );
  endUnreadAnswers(server, { withinMs: UNREAD_MS, clientOf: (request) => clientAddress(request, trustedProxyHops) });
  shareConnections([server], { total: MAX_CONNECTIONS });
  return server;
}

/** Listens, or fails with a readable error; returns the function that drains the server. */
function listen(server: Server, host: string, port: number, log: Logger): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    server.on("error", (error: NodeJS.ErrnoException) => {
      // A connection that cannot be accepted ends nothing else.
      if (server.listening) return log.error({ err: error }, "a connection could not be accepted");
      reject(
        error.code === "EADDRINUSE"
          ? new Error(`Port ${port} on ${host} is used by another process: choose another PORT or METRICS_PORT.`)
          : error,
      );
    });
    server.listen(port, host, () => resolve(() => close(server)));
  });
}

/**
 * Refuses new connections, closes idle ones, lets current requests finish, and cuts what remains after the time limit.
 */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
    const sweep = setInterval(() => server.closeIdleConnections(), DRAIN_SWEEP_MS);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(sweep);
      resolve();
    });
    server.closeIdleConnections();
  });
}

async function main(): Promise<void> {
  const config = loadConfig();
  const log = createLogger(config.logLevel, "relayer");
  const running = new Running();
  const stop = async (exitCode: number): Promise<void> => {
    await running.stop(log);
    process.exit(exitCode);
  };
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, "draining");
    drain.isOn = true;
    setTimeout(() => void stop(0), config.drainNoticeSeconds * 1_000);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  try {
    await start(config, log, running);
  } catch (error) {
    log.fatal({ err: error }, error instanceof Error ? error.message : "the relayer could not start");
    await stop(1);
  }
}

main().catch((error: unknown) => {
  // Configuration failed, so there is no log yet.
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`);
  process.exit(1);
});
