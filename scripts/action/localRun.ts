/**
 * Runs an action in the real sandbox with the real ops, over a throw-away root key and without a chain: the only
 * account has one PKP and a group that lists it with every action.
 */
import { createHash } from "node:crypto";
import pino from "pino";
import type { LocalOutcome, LocalSandbox, LocalSandboxOptions, Recorded } from "../../client/project/sandbox";
import type { Authorization } from "../../executor/access/authorize";
import type { Chain } from "../../executor/chain/chain";
import type { Decision } from "../../protocol/decision";
import { RunCode } from "../../executor/code/memory";
import { createFetcher } from "../../executor/fetcher/client";
import type { Fetcher } from "../../executor/fetcher/types";
import { Keyring } from "../../executor/keys/keyring";
import { ephemeralRootKey } from "../../executor/keys/rootKey";
import type { Budgets } from "../../executor/budgets/budgets";
import type { Spend } from "../../executor/budgets/counter";
import { OpRefusal } from "../../executor/ops/refusal";
import type { Budget } from "../../protocol/budgets";
import { createOps } from "../../executor/ops/ops";
import { createSandboxPool } from "../../executor/sandbox/pool";
import type { OpHandler } from "../../executor/sandbox/types";
import { cidOfCode } from "../../protocol/cid";
import { defined } from "../../protocol/defined";
import {
  derivationPath,
  packedAccountId,
  PathKind,
  ZERO_ADDRESS,
  ZERO_HASH,
  type KeyId,
  type PkpId,
} from "../../protocol/ids";
import { RUN_LIMITS } from "../../protocol/limits";

export type { LocalOutcome as LocalRun, LocalSandbox as LocalRunner };

interface Options extends LocalSandboxOptions {
  readonly moduleOrigin?: string;
}

const ACCOUNT = packedAccountId(ZERO_ADDRESS);

export async function createLocalRunner({ seed, allowHosts, moduleOrigin }: Options = {}): Promise<LocalSandbox> {
  const logger = pino({ level: "silent" });
  const keyring = new Keyring(seed === undefined ? ephemeralRootKey() : digest(`root ${seed}`), ZERO_HASH);
  const path = derivationPath(PathKind.pkp, digest(`path ${seed ?? ""}`).subarray(0, 15), ACCOUNT);
  const pkpId = keyring.addressAt(ACCOUNT, path) as PkpId;
  const granted = { allowed: true, reason: "None", actionByName: true, deniedOps: 0n } as const;
  const grant: Decision = { ...granted, accountId: ACCOUNT, derivationPath: path, blockNumber: 0n, blockTimestamp: 0n };
  const chain = {
    explain: async () => ({ ...grant, allowed: false, reason: "UnknownPkp", derivationPath: undefined }),
  } as unknown as Chain;
  const fetcher = await createFetcher({ logger, ...defined({ allowHosts, moduleOrigin }) });
  // Runs are sequential, so a request belongs to the last run started.
  let recorded: Recorded[] = [];
  const pool = await createSandboxPool({
    limits: RUN_LIMITS,
    size: 2,
    logger,
    fetcher: recordingFetcher(fetcher, (one) => recorded.push(one)),
    ...(moduleOrigin && { moduleOrigin }),
  }).catch(async (error: unknown) => {
    // Its process would keep this one alive.
    await fetcher.close();
    throw error;
  });

  async function run(
    code: string,
    params: Record<string, unknown>,
    wallMs: number = RUN_LIMITS.wallMs,
  ): Promise<LocalOutcome> {
    const cid = await cidOfCode(code);
    const authorization: Authorization = { keyId: ZERO_HASH as KeyId, cid, decision: grant };
    const parts = { chain, keyring, privateKeysAllowed: true, limits: RUN_LIMITS, budgets: new LocalBudgets() };
    const ops = createOps(parts, authorization, pkpId);
    const limits = { ...RUN_LIMITS, wallMs };
    const asked: Recorded[] = (recorded = []);
    const outcome = await pool.run({
      account: ACCOUNT,
      key: "local",
      code: new RunCode(Buffer.from(code)),
      cid,
      params: Buffer.from(JSON.stringify({ pkpId, ...params })),
      limits,
      ops: recordingOps(ops, (one) => asked.push(one)),
    });
    return { ...outcome, cid, recorded: asked };
  }

  async function close(): Promise<void> {
    await pool.close();
    await fetcher.close();
    keyring.destroy();
  }

  return { pkpId, level: pool.stats().level, run, close };
}

/** What a run spends counts for that run alone. */
class LocalBudgets implements Pick<Budgets, "spend"> {
  readonly #used = new Map<string, bigint>();

  async spend({ name, window }: Budget, _payer: unknown, { amount, limit }: Spend): Promise<bigint> {
    const key = `${window} ${name}`;
    const used = (this.#used.get(key) ?? 0n) + amount;
    if (used > limit) throw new OpRefusal("budget_exceeded", `${amount} is more than the budget ${name} has left`);
    this.#used.set(key, used);
    return limit - used;
  }
}

type Remember = (one: Recorded) => void;

function recordingOps(ops: OpHandler, record: Remember): OpHandler {
  return async (call) => {
    const answer = await ops(call);
    const args = JSON.parse(call.args) as unknown;
    record({ kind: "op", name: call.name, args, ok: answer.ok, ...(answer.ok ? {} : { error: answer.message }) });
    return answer;
  };
}

function recordingFetcher(fetcher: Fetcher, record: Remember): Fetcher {
  return {
    fetchGuest: async (request, body, options) => {
      const { method, url } = request;
      try {
        const answer = await fetcher.fetchGuest(request, body, options);
        record({ kind: "fetch", method, url, status: answer.response.status });
        return answer;
      } catch (error) {
        record({ kind: "fetch", method, url, error: error instanceof Error ? error.message : String(error) });
        throw error;
      }
    },
    checkGuest: (url, options) => fetcher.checkGuest(url, options),
    fetchModule: (url, maxBytes, options) => fetcher.fetchModule(url, maxBytes, options),
    fetchCode: (cid, maxBytes) => fetcher.fetchCode(cid, maxBytes),
    fetchJwks: (url) => fetcher.fetchJwks(url),
    close: () => fetcher.close(),
  };
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
