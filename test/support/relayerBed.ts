/**
 * One whole relayer in this process (HTTP, idempotency records, ledger, chain) over a store with injectable statement
 * failures. The executor is in this process, too: it signs for throw-away payers, mints real keys, and counts the runs
 * it was asked to start.
 */
import type { Server } from "node:http";
import { createServer } from "node:http";
import { once } from "node:events";
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { Mint } from "../../executor/access/mint";
import { Keyring } from "../../executor/keys/keyring";
import { cidOfCode } from "../../protocol/cid";
import type { ExecutorAnswer, ExecutorCall, ExecutorRequest } from "../../protocol/executor";
import { KeywrightError } from "../../protocol/errors";
import { actionHashOf, keyIdOf, type ApiKey, type Cid, type Hash32 } from "../../protocol/ids";
import type { KeyState } from "../../protocol/keyState";
import { RATE_LIMITS, type RateLimits } from "../../protocol/limits";
import { DEFAULT_SERVICE_NAME } from "../../protocol/serviceName";
import { TYPED_DATA_VERSION, domainName } from "../../protocol/typedData";
import { createApp } from "../../relayer/app";
import { PeriodicTask } from "../../relayer/periodicTask";
import { openChain } from "../../relayer/chain";
import type { Chain, ExecutorWriteCall } from "../../relayer/chain/types";
import { Credits, type PaymentKeys } from "../../relayer/credits/index";
import { DeniedRun, type RequestedRun } from "../../relayer/executor/runExchange";
import type { RunQuestion } from "../../relayer/executor/runBody";
import type { Executor } from "../../relayer/executor/client";
import { Authentication } from "../../relayer/middleware/credentials";
import { Idempotency } from "../../relayer/middleware/idempotency";
import { RequestLimits } from "../../relayer/middleware/rateLimits";
import { createHandlers, type HandlerDeps } from "../../relayer/routes";
import { BudgetStore } from "../../relayer/store/budgets";
import { createIdempotencyStore } from "../../relayer/store/idempotency";
import type { Store, StoreOptions } from "../../relayer/store/index";
import { Instance } from "../../relayer/store/instance";
import { DEVELOPMENT_CHAIN_ID } from "../../scripts/dev/chain";
import { TEST_TUNING, eventually, type ChainBed } from "./chainBed";
import { openTestStore } from "./testStore";

/** Signs as the bed's executor, mints as the real one, and counts runs instead of executing them. */
class CountingExecutor implements Executor {
  /** How often each run was started, by its params. */
  readonly runs = new Map<string, number>();
  /** The contract used to authorize runs. */
  contract: Pick<Chain, "key" | "explainExecution"> | undefined;
  readonly #mint: Mint;
  readonly #bed: ChainBed;

  constructor(bed: ChainBed) {
    this.#bed = bed;
    const domain = {
      name: domainName(DEFAULT_SERVICE_NAME),
      version: TYPED_DATA_VERSION,
      chainId: DEVELOPMENT_CHAIN_ID,
    } as const;
    this.#mint = new Mint(new Keyring(randomBytes(32), `0x${"5a".repeat(32)}` as Hash32), domain);
  }

  async call<C extends ExecutorCall>(name: C, input: ExecutorRequest<C>): Promise<ExecutorAnswer<C>> {
    const minted = {
      mintAccountKey: () => this.#mint.accountKey(input as ExecutorRequest<"mintAccountKey">),
      mintApiUsageKey: () => this.#mint.apiUsageKey(input as ExecutorRequest<"mintApiUsageKey">),
    } as Partial<Record<ExecutorCall, () => unknown>>;
    const mint = minted[name];
    if (mint !== undefined) return mint() as ExecutorAnswer<C>;
    if (name === "info") return { limits: { wallMs: 60_000 } } as unknown as ExecutorAnswer<C>;
    return (await this.#bed.executor.call(
      name as ExecutorWriteCall,
      input as ExecutorRequest<ExecutorWriteCall>,
    )) as ExecutorAnswer<C>;
  }

  askRun(question: RunQuestion): RequestedRun {
    let mayHaveRun = false;
    const permission = this.#decide(question);
    permission.catch(() => undefined);
    const start = async (limitMs: number): Promise<ExecutorAnswer<"run">> => {
      mayHaveRun = true;
      this.runs.set(question.params, (this.runs.get(question.params) ?? 0) + 1);
      return {
        response: question.params,
        logs: "",
        usage: { durationMs: 5, limitMs },
        serviceFault: false,
        isFree: false,
        cid: await cidOf(question),
        pkpsUsed: [],
        receipt: `e30.e30.${"A".repeat(86)}`,
      };
    };
    return {
      permission,
      start,
      abandon: () => undefined,
      leave: () => undefined,
      get mayHaveRun() {
        return mayHaveRun;
      },
    };
  }

  async #decide(question: RunQuestion): Promise<KeyState> {
    const { credential } = question;
    await question.notBefore;
    const key = credential.type === "key" ? await this.contract?.key([keyIdOf(credential.key as ApiKey)]) : undefined;
    if (key === undefined) throw new KeywrightError("unknown_key", "This key is unknown here or has been revoked.");
    const decision = await this.contract?.explainExecution(key.keyId, actionHashOf(await cidOf(question)));
    if (decision?.allowed === true) return key;
    throw new DeniedRun(new KeywrightError("action_not_permitted", String(decision?.reason)), key);
  }
}

const cidOf = async ({ cid, code = "" }: RunQuestion): Promise<Cid> => (cid as Cid | undefined) ?? cidOfCode(code);

/** All tests of a process share one address: lift its rate limits. */
export const UNLIMITED = Object.fromEntries(
  Object.keys(RATE_LIMITS.production).map((name) => [name, 1e9]),
) as RateLimits;

export interface RelayerBedOptions {
  readonly chain: ChainBed;
  readonly store: Pick<StoreOptions, "databaseUrl" | "around">;
  readonly payments?: PaymentKeys;
  readonly limits?: RateLimits;
  /** Interval of the credits sweeps; default 200 ms. */
  readonly sweepMs?: number;
  /** Whether accounts made on chain get sign-up credit on first sight, as on the development chain. Default true. */
  readonly creditsEveryAccount?: boolean;
}

export interface RelayerBed {
  readonly baseUrl: string;
  readonly store: Store;
  readonly executor: CountingExecutor;
  readonly credits: Credits;
  readonly chain: Chain;
  stop(): Promise<void>;
}

export async function startRelayerBed({
  chain: bed,
  store: storeOptions,
  payments,
  sweepMs = 200,
  limits = UNLIMITED,
  creditsEveryAccount = true,
}: RelayerBedOptions): Promise<RelayerBed> {
  const log = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const onError = (error: unknown): void => log.warn({ err: error }, "periodicTask");
  const store = await openTestStore({ ...storeOptions, onIdleError: onError });
  const { db } = store;
  const instance = new Instance({ db, lockOf: store.lockOf, onError });
  await instance.start();
  const executor = new CountingExecutor(bed);
  const prices = { managementWriteCents: 1, runSecondCents: 1 };
  const signup = { cents: 2_000, dailyCapCents: undefined, everyAccount: creditsEveryAccount };
  const credits = new Credits({
    db,
    instanceId: instance.id,
    prices,
    signup,
    payments,
    deployment: "bed",
    onError,
    sweepMs,
  });
  credits.start();
  const chain = await openChain({
    db,
    instanceId: instance.id,
    executor,
    hooks: {
      onBegin: (submissionIds, trx) => credits.reservations.bindWrites(submissionIds, trx),
      onOutcome: (outcomes, trx) => credits.reservations.endWrites(outcomes, trx),
      onAbandon: (submissionId) => credits.reservations.abandonWrite(submissionId),
    },
    log,
    rpcUrls: [bed.proxy.url],
    chainId: DEVELOPMENT_CHAIN_ID,
    contractAddress: bed.contractAddress,
    deploymentBlock: bed.deploymentBlock,
    payerCount: bed.payers,
    tuning: TEST_TUNING,
  });
  executor.contract = chain;
  const kept = createIdempotencyStore(db, instance.id, onError);
  const catchUp = new PeriodicTask(() => kept.catchUp(), 100, onError);
  catchUp.start();
  const typedDataDomain = {
    name: domainName(DEFAULT_SERVICE_NAME),
    version: TYPED_DATA_VERSION,
    chainId: DEVELOPMENT_CHAIN_ID,
  } as const;
  const deps = {
    chain,
    credits,
    executor,
    executorInfo: () => executor.call("info", {}),
    cidOf: (code: string) => cidOfCode(code),
    cids: { remember: async () => undefined, lookUp: async () => new Map() },
    budgets: new BudgetStore(db),
    onRan: () => undefined,
    log,
    serviceName: DEFAULT_SERVICE_NAME,
    typedDataDomain,
    prices,
    rateLimits: RATE_LIMITS.development,
    problems: async () => (await chain.ready()).problems,
  } as unknown as HandlerDeps;
  const app = createApp({
    handlers: createHandlers(deps),
    authentication: new Authentication({ chain, executor, typedDataDomain }),
    limits: new RequestLimits(limits),
    idempotency: new Idempotency(kept),
    addressHashKey: "bed",
    wasSubmitted: async (actId) => (await chain.submissionByIdempotencyKey(actId)) !== undefined,
    isHook: async () => false,
    log,
    serviceName: DEFAULT_SERVICE_NAME,
    trustedProxyHops: 1,
    onAnswered: () => undefined,
  });
  const server: Server = createServer(app.callback()).listen(0, "127.0.0.1");
  await once(server, "listening");
  await eventually("the relayer is ready", async () => (await chain.ready()).ready);
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    store,
    executor,
    credits,
    chain,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      for (const part of [catchUp, credits, instance]) await part.stop();
      await chain.close();
      await store.close();
    },
  };
}
