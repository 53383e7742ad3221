/** Maps every call of the protocol to its implementation. */
import type { Logger } from "pino";
import type { AccountId, Hash32 } from "../protocol/ids";
import type { ExecutorAnswer } from "../protocol/executor";
import type { LeaseRequests } from "./budgets/requests";
import type { Callers } from "./access/callers";
import type { Chain } from "./chain/chain";
import type { Config } from "./config";
import type { LoopWatch } from "./liveness/loopWatch";
import type { Mint } from "./access/mint";
import type { PublicKeys } from "./access/publicKeys";
import type { RootIdentity } from "./keys/rootIdentity";
import { commitmentAnswer } from "./root";
import type { Runner } from "./run";
import type { SandboxPool } from "./sandbox/types";
import type { Triggers } from "./triggers/triggers";
import type { Handlers } from "./server";
import { attest, quoteEvidence, type ConfigDocument, type TeeSource } from "./tee";
import type { Webhooks } from "./webhooks";
import type { GasGuard } from "./writes/gas";
import type { Forwards } from "./writes/forwards";
import type { Writes } from "./writes/writes";
import { defined } from "../protocol/defined";

export interface ServiceParts {
  readonly config: Config;
  readonly keyNamespace: Hash32;
  readonly root: RootIdentity;
  readonly chain: Chain;
  readonly callers: Callers;
  readonly mint: Mint;
  readonly publicKeys: PublicKeys;
  readonly webhooks: Webhooks;
  readonly writes: Writes;
  readonly leases: LeaseRequests;
  readonly forwards: Forwards;
  readonly gas: GasGuard;
  readonly runner: Runner;
  readonly triggers: Triggers;
  readonly pool: SandboxPool;
  readonly tee: TeeSource;
  /** Fixed at start: a quote binds it. */
  readonly configDocument: ConfigDocument;
  readonly loop: LoopWatch;
  readonly logger: Logger;
}

export function createHandlers(parts: ServiceParts): Handlers {
  const { mint, writes, forwards, gas, runner, callers } = parts;
  const tlsCertFile = parts.config.TLS_CERT_FILE;
  return {
    run: (request, context) => runner.run(request, context),
    leaveQueue: ({ requestId }) => runner.leaveQueue(requestId),
    mintAccountKey: (request) => mint.accountKey(request),
    mintApiUsageKey: (request) => mint.apiUsageKey(request),
    mintTrigger: (request) => parts.triggers.mint(request),
    acceptHook: (request) => parts.triggers.acceptHook(request),
    mintPkp: ({ accountId }) => mint.pkp(accountId.toLowerCase() as AccountId),
    mintPkpWithSignature: (request) => mint.pkpWithSignature(request),
    mintUsageKeyWithSignature: (request) => mint.usageKeyWithSignature(request),
    publicKeys: (request, { signal }) => parts.publicKeys.state(request, signal),
    signWebhooks: ({ messages }) => ({ messages: messages.map((message) => parts.webhooks.sign(message)) }),
    sendWebhook: ({ url, message }, { signal }) => parts.webhooks.send(url, message, signal),
    checkWebhook: ({ url }) => parts.webhooks.check(url),
    ownerWallet: async ({ token }) => {
      const { wallet, ids } = await callers.callerOfToken(token);
      return { walletAddress: wallet(), accountId: ids[0] };
    },
    authorizeWrites: (request) => writes.authorizeWrites(request),
    signAsPayer: async (request) => (await gas.ready(), writes.signAsPayer(request)),
    signForwards: async (request) => (await gas.ready(), forwards.signForwards(request)),
    signForwardOfIdentity: (request) => forwards.signOfIdentity(request),
    signNoop: async (request) => (await gas.ready(), writes.signNoop(request)),
    signTopUp: async (request) => (await gas.ready(), writes.signTopUp(request)),
    nextLeases: (_request, { signal }) => parts.leases.next(signal),
    leaseOutcome: (request) => parts.leases.outcome(request),
    payers: (request) => writes.payers(request),
    attestation: (request) => attest(parts.tee, { config: parts.configDocument, ...defined({ tlsCertFile }) }, request),
    evidenceQuote: (request) => quoteEvidence(parts.tee, request),
    info: () => info(parts),
    rootCommitment: () => commitmentAnswer(parts.root),
    ready: () => ready(parts),
  };
}

async function info(parts: ServiceParts): Promise<ExecutorAnswer<"info">> {
  const { config, pool, tee } = parts;
  const { level, size, busy, queued, held } = pool.stats();
  const dstack = await dstackInfo(parts);
  return {
    chainId: config.chainId.toString(),
    contractAddress: config.contractAddress,
    keyNamespace: parts.keyNamespace,
    rootCommitment: parts.root.commitment,
    limits: { ...config.limits },
    privateKeysAllowed: config.ALLOW_PRIVATE_KEYS,
    tee: tee.kind,
    ...defined({ dstack }),
    config: { ...parts.configDocument },
    sandbox: { level: level.level, missing: [...level.missing] },
    pool: { size, busy, queued, held },
    loop: parts.loop.held,
  };
}

/** If the guest agent does not answer, only its own fields are missing from the answer. */
async function dstackInfo({ tee, logger }: ServiceParts): Promise<Record<string, unknown> | undefined> {
  return tee.info().catch((error: unknown) => {
    logger.warn({ err: error }, "the guest agent gave no info");
    return undefined;
  });
}

async function ready({ chain, pool }: ServiceParts): Promise<ExecutorAnswer<"ready">> {
  const problems: string[] = [];
  const blockNumber = await chain.head().catch((error: unknown) => {
    problems.push(error instanceof Error ? error.message : "the chain cannot be read");
    return undefined;
  });
  if (pool.stats().children === 0) problems.push("no sandbox child is running");
  return {
    ready: problems.length === 0,
    problems,
    ...defined({ blockNumber: blockNumber === undefined ? undefined : Number(blockNumber) }),
  };
}
