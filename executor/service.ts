/**
 * Assembles the keyholder; each part gets only what it needs. Starts the parts in order of dependency and stops them in
 * reverse, so that no process or file is left behind.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import type { ForwardDomain } from "../protocol/forwardShape";
import { forwarderName } from "../protocol/serviceName";
import { configDigest } from "../protocol/attestation";
import { keyNamespaceOf } from "../protocol/namespace";
import type { RootStatement } from "../protocol/rootKey";
import type { AccountId, Hash32, KeyId } from "../protocol/ids";
import { TYPED_DATA_VERSION, domainName, type TypedDataDomain } from "../protocol/typedData";
import { Callers } from "./access/callers";
import { Chain, WrongChain } from "./chain/chain";
import { EventLogs } from "./chain/eventLogs";
import { Budgets } from "./budgets/budgets";
import { LeaseRequests } from "./budgets/requests";
import { BudgetReads } from "./chain/budgetReads";
import { budgetsAddressOf } from "../protocol/budgets";
import { CidComputer } from "../protocol/cidComputer";
import { Code } from "./code/code";
import type { CodeMemory } from "./code/memory";
import { CodeStore } from "./code/store";
import type { Config } from "./config";
import { createFetcher, type StartedFetcher } from "./fetcher/client";
import { FetchFailed, type Fetcher } from "./fetcher/types";
import { createHandlers } from "./handlers";
import { IdentityVerifier } from "./access/identity";
import { useFastKeccak } from "../protocol/keccak";
import { StatementKey } from "./keys/statementKey";
import type { Keyring } from "./keys/keyring";
import { LoopWatch } from "./liveness/loopWatch";
import { Mint } from "./access/mint";
import { PublicKeys } from "./access/publicKeys";
import { Receipts, type ReceiptParts } from "./receipts";
import { openCheckedTee, openKeyring, rootKeyFileOf } from "./root";
import { Runner } from "./run";
import { CHILD_MIB, childrenFor, memoryOfChildren, slotsFor } from "./sandbox/memory";
import { createSandboxPool } from "./sandbox/pool";
import type { SandboxPool } from "./sandbox/types";
import { ExecutorServer } from "./server";
import { buildConfigDocument, type ConfigDocument } from "./tee";
import { servedPackages } from "./tee/packages";
import { Webhooks } from "./webhooks";
import { Triggers, type TriggersParts } from "./triggers/triggers";
import { GasGuard } from "./writes/gas";
import { Forwards } from "./writes/forwards";
import { Writes } from "./writes/writes";
import { defined } from "../protocol/defined";
import { MIB } from "../protocol/limits";

const POOL_DRAIN_MS = 500;
const CHAIN_WAIT_MS = 30_000;
const CHAIN_RETRY_MS = 500;

export interface Service {
  /** Rejects with the reason why the service cannot start, after everything started so far was undone. */
  readonly started: Promise<void>;
  /** May be called during the start. */
  stop(): Promise<void>;
}

/** Cleanup steps, run last to first even when some fail. A step added after `run` is run at once. */
class Undo {
  readonly #steps: (() => unknown)[] = [];
  #isOver = false;

  add(step: () => unknown): void {
    this.#steps.unshift(step);
    if (this.#isOver) void this.run();
  }

  async run(): Promise<void> {
    this.#isOver = true;
    for (const step of this.#steps.splice(0)) await Promise.resolve(step()).catch(() => undefined);
  }
}

/**
 * `missingElsewhere` are barriers that do not hold for the keyholder's own process; they count like those of the
 * children.
 */
export function startService(config: Config, logger: Logger, missingElsewhere: readonly string[] = []): Service {
  const undo = new Undo();
  const started = start(config, logger, undo, missingElsewhere).catch(async (error: unknown) => {
    await undo.run();
    throw error;
  });
  return { started, stop: () => undo.run() };
}

async function start(config: Config, logger: Logger, undo: Undo, missingElsewhere: readonly string[]): Promise<void> {
  await useFastKeccak();
  const keyNamespace = keyNamespaceOf(config.chainId, config.contractAddress);
  const { EXECUTOR_SOCKET: socketPath, EXECUTOR_SOCKET_GROUP: group } = config;
  const server = await ExecutorServer.listen({ socketPath, group, logger });
  undo.add(() => server.close(0));
  const chain = openChain(config, undo);
  const committed = await waitForContract(chain, keyNamespace, logger);
  const tee = await openCheckedTee(config);
  undo.add(() => tee.close());
  const keyring = await openKeyring(config, tee, { keyNamespace, committed }, logger);
  undo.add(() => keyring.destroy());

  const dataDir = prepareDataDir(config, undo);
  const [fetcher, keySets] = await Promise.all([
    openFetcher(config, logger, undo),
    openKeySetFetcher(config, logger, undo),
  ]);
  const missing = [...new Set([...missingElsewhere, ...fetcher.missing, ...keySets.missing])];
  const pool = await openPool(config, fetcher, missing, logger, undo);
  const code = await openCode(config, dataDir, fetcher, server.codeMemory, undo);
  const callers = new Callers(keyring, new IdentityVerifier(config.IDENTITY_ISSUERS, keySets));
  const gas = gasGuard(config, chain);
  const loop = new LoopWatch(logger);
  undo.add(() => loop.stop());
  const domain = domainOf(config);
  const statementKey = new StatementKey(keyring);
  const root = keyring.rootStatement(statementKey.publicKey);
  const configDocument = configDocumentOf(config, keyNamespace, statementKey.publicKey, root, pool);
  const leases = new LeaseRequests();
  const logs = openEventLogs(config, undo);
  const triggers = openTriggers(config, { keyring, statementKey, callers, logs });
  const runner = new Runner({
    triggers,
    chain,
    budgets: openBudgets(config, chain, leases),
    receipts: new Receipts({ chain, statementKey, keyNamespace, ...receiptTerms(config, configDocument) }),
    keyring,
    callers,
    code,
    pool,
    limits: config.limits,
    privateKeysAllowed: config.ALLOW_PRIVATE_KEYS,
  });
  const writes = openWrites(config, chain, keyring, callers, domain, gas, leases);
  server.serve(
    createHandlers({
      config,
      keyNamespace,
      root: { commitment: committed, publicKey: root.public_key },
      chain,
      callers,
      mint: new Mint(keyring, domain),
      publicKeys: new PublicKeys(keyring, keyNamespace, statementKey),
      webhooks: new Webhooks(statementKey, fetcher),
      writes,
      leases,
      forwards: openForwards(config, keyring, callers, writes, chain),
      gas,
      runner,
      triggers,
      pool,
      tee,
      configDocument,
      loop,
      logger,
    }),
  );
  // Added last, so it runs first: open calls finish while everything they need is still available.
  undo.add(() => (leases.stop(), server.close(config.drainMs)));
}

const receiptTerms = (
  { prices }: Config,
  document: ConfigDocument,
): Pick<ReceiptParts, "configSha256" | "runSecondCents"> => ({
  configSha256: configDigest(document).toString("hex"),
  runSecondCents: prices.runSecondCents,
});

function openTriggers(
  { limits, chainId }: Config,
  parts: Pick<TriggersParts, "keyring" | "statementKey" | "callers" | "logs">,
): Triggers {
  return new Triggers({
    ...parts,
    paramsBytes: limits.paramsBytes,
    chainId,
    nowMs: () => Date.now(),
    startedAtMs: Date.now(),
  });
}

async function openCode(
  config: Config,
  dataDir: string,
  fetcher: Fetcher,
  memory: CodeMemory,
  undo: Undo,
): Promise<Code> {
  const cids = new CidComputer();
  undo.add(() => cids.close());
  const store = await CodeStore.open(join(dataDir, "code"), config.CODE_STORE_MIB * MIB);
  return new Code(cids, store, fetcher, config.limits.codeBytes, memory);
}

const domainOf = ({ SERVICE_NAME, chainId }: Config): TypedDataDomain => ({
  name: domainName(SERVICE_NAME),
  version: TYPED_DATA_VERSION,
  chainId,
});

function openChain(config: Config, undo: Undo): Chain {
  const chain = new Chain({
    rpcUrls: config.RPC_URLS,
    quorum: config.RPC_QUORUM,
    chainId: config.chainId,
    contractAddress: config.contractAddress,
    timeoutMs: config.RPC_TIMEOUT_MS,
    maxHeadAgeSeconds: config.maxHeadAgeSeconds,
  });
  undo.add(() => chain.close());
  return chain;
}

function openEventLogs(config: Config, undo: Undo): EventLogs {
  const { RPC_URLS: rpcUrls, EVENT_RPC_URLS: others, RPC_QUORUM: quorum, RPC_TIMEOUT_MS: timeoutMs, chainId } = config;
  const logs = new EventLogs({ chainId, rpcUrls, others, quorum, timeoutMs });
  undo.add(() => logs.close());
  return logs;
}

/**
 * Waits for a chain that is not up yet. A wrong chain fails at once: other keys would be derived for it. Returns the
 * commitment to the root that the contract is bound to.
 */
async function waitForContract(chain: Chain, keyNamespace: Hash32, logger: Logger): Promise<Hash32> {
  const deadline = Date.now() + CHAIN_WAIT_MS;
  for (;;) {
    try {
      await chain.requireNamespace(keyNamespace);
      return await chain.rootCommitment();
    } catch (error) {
      if (error instanceof WrongChain || Date.now() > deadline) throw error;
      logger.warn({ err: error }, "waiting for the chain");
      await new Promise((resolve) => setTimeout(resolve, CHAIN_RETRY_MS));
    }
  }
}

function prepareDataDir(config: Config, undo: Undo): string {
  if (config.DATA_DIR !== undefined) return config.DATA_DIR;
  const temporary = mkdtempSync(join(tmpdir(), "keywright-executor-"));
  undo.add(() => rmSync(temporary, { recursive: true, force: true }));
  return temporary;
}

async function openFetcher(config: Config, logger: Logger, undo: Undo): Promise<StartedFetcher> {
  const fetcher = await createFetcher({
    logger,
    secretPaths: secretPaths(config),
    ...defined({
      moduleOrigin: config.MODULE_ORIGIN,
      gateways: config.IPFS_GATEWAYS,
      kuboRpcUrl: config.KUBO_RPC_URL,
      allowHosts: config.FETCH_ALLOW_HOSTS,
      webhookAllowHosts: config.WEBHOOK_ALLOW_HOSTS,
      ports: config.FETCH_PORTS,
      dnsServers: config.DNS_SERVERS,
    }),
    uid: config.FETCHER_UID,
  });
  undo.add(() => fetcher.close());
  return fetcher;
}

/**
 * The process that parses answers of untrusted servers might be compromised and must not be able to forge key sets, and
 * so sign-ins: they are fetched by a separate process.
 */
async function openKeySetFetcher(
  config: Config,
  logger: Logger,
  undo: Undo,
): Promise<Pick<StartedFetcher, "fetchJwks" | "missing">> {
  const jwksUrls = config.IDENTITY_ISSUERS.map(({ jwksUrl }) => jwksUrl);
  if (jwksUrls.length === 0)
    return {
      fetchJwks: () => Promise.reject(new FetchFailed("refused", "no identity provider is configured")),
      missing: [],
    };
  const fetcher = await createFetcher({
    logger,
    jwksUrls,
    uid: config.KEY_SET_FETCHER_UID,
    secretPaths: secretPaths(config),
  });
  undo.add(() => fetcher.close());
  return fetcher;
}

async function openPool(
  config: Config,
  fetcher: Fetcher,
  missingElsewhere: readonly string[],
  logger: Logger,
  undo: Undo,
): Promise<SandboxPool> {
  const memoryBytes = config.SANDBOX_MEMORY_MIB === undefined ? memoryOfChildren() : config.SANDBOX_MEMORY_MIB * MIB;
  const fitting = slotsFor(memoryBytes, config.limits.heapMiB, availableParallelism());
  const size = config.POOL_SIZE ?? fitting;
  if (memoryBytes < size * (config.limits.heapMiB + CHILD_MIB) * MIB) {
    logger.warn(
      { poolSize: size, heapMiB: config.limits.heapMiB, memoryMiB: Math.floor(memoryBytes / MIB) },
      "runs at once may need more memory than there is",
    );
  }
  const pool = await createSandboxPool({
    limits: config.limits,
    size,
    maxChildren: childrenFor(memoryBytes, size),
    memoryBytes,
    logger,
    fetcher,
    ...defined({ moduleOrigin: config.MODULE_ORIGIN }),
    rpcUrls: config.ACTION_RPC_URLS,
    secretPaths: secretPaths(config),
    missingElsewhere,
    requireFullIsolation: config.production,
    firstUid: config.SANDBOX_FIRST_UID,
  });
  undo.add(() => pool.close(POOL_DRAIN_MS));
  const { level } = pool.stats();
  if (level.level !== "full")
    logger.warn({ level: level.level, missing: level.missing }, "the sandbox is not fully isolated");
  return pool;
}

/** Paths that no child may be able to open; tested by the self-test. */
function secretPaths(config: Config): string[] {
  return [config.EXECUTOR_SOCKET, rootKeyFileOf(config), config.DSTACK_ENDPOINT].filter(
    (path) => path !== undefined && path.startsWith("/"),
  ) as string[];
}

function gasGuard(config: Config, chain: Chain): GasGuard {
  const rules = {
    maxFeePerGasWei: config.MAX_FEE_PER_GAS_WEI,
    maxTipPerGasWei: config.MAX_TIP_PER_GAS_WEI,
    maxWeiPerHour: config.maxGasWeiPerHour,
  };
  return new GasGuard(rules, () => chain.baseFee());
}

const openBudgets = ({ contractAddress, leaseDepth }: Config, chain: Chain, leases: LeaseRequests): Budgets =>
  new Budgets(new BudgetReads(chain, budgetsAddressOf(contractAddress), leaseDepth), leases);

function openWrites(
  config: Config,
  chain: Chain,
  keyring: Keyring,
  callers: Callers,
  domain: TypedDataDomain,
  gas: GasGuard,
  leases: LeaseRequests,
): Writes {
  return new Writes(keyring, callers, {
    leaseCalldata: (id) => leases.calldata(id),
    accountOf: (id) => chain.accountOf(id as AccountId | KeyId),
    chainId: config.chainId,
    contractAddress: config.contractAddress,
    domain,
    gas,
    maxTopUpWei: config.MAX_TOP_UP_WEI,
  });
}

function openForwards(config: Config, keyring: Keyring, callers: Callers, writes: Writes, chain: Chain): Forwards {
  const { chainId, contractAddress } = config;
  const name = forwarderName(config.SERVICE_NAME);
  const domain = async (): Promise<ForwardDomain> => ({
    name,
    version: "1",
    chainId,
    verifyingContract: await chain.forwarder(),
  });
  return new Forwards(keyring, callers, writes, { contractAddress, domain });
}

function configDocumentOf(
  config: Config,
  keyNamespace: Hash32,
  statementKey: string,
  root: RootStatement,
  pool: SandboxPool,
): ConfigDocument {
  const { level } = pool.stats();
  return buildConfigDocument({
    serviceName: config.SERVICE_NAME,
    chainId: config.chainId,
    contractAddress: config.contractAddress,
    keyNamespace,
    statementKey,
    root,
    rpcUrls: config.RPC_URLS,
    eventChains: config.EVENT_RPC_URLS,
    rpcQuorum: config.RPC_QUORUM,
    maxHeadAgeSeconds: config.maxHeadAgeSeconds,
    leaseConfirmations: config.leaseDepth.confirmations,
    identityIssuers: config.IDENTITY_ISSUERS,
    actionRpcUrls: config.ACTION_RPC_URLS,
    limits: { ...config.limits },
    prices: { ...config.prices },
    features: { privateKeys: config.ALLOW_PRIVATE_KEYS },
    sandbox: level,
    ...defined({
      moduleOrigin: config.MODULE_ORIGIN,
      ipfsGateways: config.IPFS_GATEWAYS,
      fetchAllowHosts: config.FETCH_ALLOW_HOSTS,
      fetchPorts: config.FETCH_PORTS,
      packages: servedPackages(),
    }),
  });
}
