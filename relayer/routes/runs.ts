/**
 * Running an action: one question to the contract says permission and existence, credit is reserved, the executor (which has asked for itself meanwhile) runs,
 * the time used is settled. The run goes on when the client leaves, and is paid for. Source: specification §1 "Execution check"; house "Run an action".
 */
import type { DenialReason } from "../../protocol/decision";
import { KeywrightError, type ErrorCode } from "../../protocol/errors";
import { ZERO_ADDRESS, actionHashOf, parseAddress, type Cid, type KeyId, type PkpId } from "../../protocol/ids";
import type { ExecutorAnswer } from "../../protocol/executor";
import type { Act } from "../act";
import type { RunRecord } from "../credits/types";
import type { PreparedRun } from "../executorClient";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import { alreadyRan } from "../middleware/idempotency";
import type { RouteDeps } from "./deps";
import { pkpAddress } from "./references";

type Run = Call<"runAction">;

export function runRoutes(deps: RouteDeps): HandlersOf<"runAction"> {
  return {
    runAction: async (call) => {
      if (call.act?.isRepeated === true) await requireNotRun(deps, call.act);
      const cid = call.body.action_ipfs_cid ?? call.body.ipfs_id ?? (await deps.cidOf(call.body.code ?? ""));
      const pkpId = call.body.pkp_id === undefined ? undefined : await pkpAddress(deps.chain, call.caller.accountId, call.body.pkp_id);
      const prepared = prepare(deps, call, pkpId);
      try {
        await requirePermission(deps, call, cid, pkpId);
        await call.confirmed;
        return await paidRun(deps, call, prepared);
      } catch (error) {
        prepared.abandon();
        throw error;
      }
    },
  };
}

/** An earlier request under this key was left without a known end: if it came as far as reserving credit, the action may have run, and is not run again. */
async function requireNotRun({ credits }: RouteDeps, act: Act): Promise<void> {
  const earlier = await credits.earlierRun(act.id);
  if (earlier === undefined) return;
  const { run } = earlier;
  throw alreadyRan(run === undefined ? {} : { has_error: run.outcome !== "succeeded", usage: { duration_ms: run.durationMs, cost_cents: run.costCents } });
}

async function requirePermission({ chain }: RouteDeps, { caller }: Run, cid: Cid, pkpId: PkpId | undefined): Promise<void> {
  const { allowed, reason } = await chain.explainExecution(caller.actorId as KeyId, actionHashOf(cid), pkpId);
  if (!allowed) throw denial(reason, cid);
}

/** What failed, of key, group, action and PKP, and what to do about it. */
function denial(reason: DenialReason, cid: Cid): KeywrightError {
  const [code, failed, detail] = DENIALS[reason];
  return new KeywrightError(code, detail, { failed, action_ipfs_cid: cid });
}

const DENIALS: Record<DenialReason, readonly [code: ErrorCode, failed: "key" | "group" | "action" | "pkp", detail: string]> = {
  None: ["not_authorized", "key", "This run is not permitted."],
  UnknownKey: ["unknown_key", "key", "This key is unknown here or has been revoked."],
  KeyExpired: ["key_expired", "key", "This key has expired."],
  AccountChainSecured: ["account_chain_secured", "key", "This key is no longer a credential of the account."],
  AccountFrozen: ["account_frozen", "key", "The account's owner has frozen it: no key of it can act until the owner ends that."],
  NoExecuteScope: ["no_execute_scope", "group", "The key may not execute in any group of the account: give it execute_in_groups."],
  ActionNotPermitted: ["action_not_permitted", "action", "No group where the key executes lists this action: add its CID to one."],
  UnknownPkp: ["pkp_not_permitted", "pkp", "The account has no such PKP."],
  PkpNotPermitted: ["pkp_not_permitted", "pkp", "No group where the key executes lists both this action and this PKP."],
};

/** The reservation belongs to the run, not to the answer: whatever happens after the guest was started, it is settled. */
async function paidRun(deps: RouteDeps, call: Run, prepared: PreparedRun): Promise<Answer<"runAction">> {
  const { accountId, keyId, capCents } = call.caller;
  const { limits } = await deps.executorInfo();
  const wanted = Math.min(call.body.timeout_ms ?? Infinity, limits["wallMs"] ?? Infinity);
  const { reservationId, limitMs } = await deps.credits.reserveRun({ accountId, keyId, capCents, limitMs: wanted, runId: call.act?.id });
  const startedAt = new Date();
  const didNotBegin = call.act?.begins();
  const ran = await prepared.start(limitMs).catch(async (error: unknown) => {
    if (!prepared.mayHaveRun) didNotBegin?.();
    await deps.credits.releaseRun(reservationId);
    throw error;
  });
  deps.onRan({ error: ran.error?.code, seconds: ran.usage.durationMs / 1_000 });
  const costCents = await settle(deps, reservationId, ran, recordOf(call, ran, startedAt));
  return runAnswer(ran, costCents);
}

/** The executor asks the contract for itself, and does so meanwhile; nothing runs before it is told to start. */
function prepare({ executor }: RouteDeps, { caller, body, requestId }: Run, pkpId: PkpId | undefined): PreparedRun {
  if (caller.credential === undefined) throw new KeywrightError("missing_credential", "A run takes a key or an identity token.");
  const code = body.code === undefined ? { cid: body.action_ipfs_cid ?? body.ipfs_id } : { code: body.code };
  const request = { credential: caller.credential, ...code, params: body.js_params ?? "{}", ...(pkpId === undefined ? {} : { pkpId }) };
  return executor.prepareRun(request, { requestId });
}

/** Code that is found to be invalid within this time is free; what takes longer is work like any other. */
const FREE_TO_PARSE_MS = 1_000;

/** Free: faults of ours, and code that never began. */
async function settle({ credits }: RouteDeps, reservationId: string, ran: ExecutorAnswer<"run">, record: RunRecord): Promise<number> {
  const { faultIsOurs, error, usage } = ran;
  const neverBegan = error?.code === "invalid_code" && usage.durationMs <= FREE_TO_PARSE_MS;
  if (!faultIsOurs && !neverBegan) return credits.settleRun(reservationId, usage.durationMs, record);
  await credits.releaseRun(reservationId, record);
  return 0;
}

function recordOf({ caller, requestId }: Run, { cid, error, usage, pkpsUsed }: ExecutorAnswer<"run">, startedAt: Date): RunRecord {
  return {
    accountId: caller.accountId,
    keyId: caller.actorId,
    requestId,
    cid: cid as Cid,
    actionHash: actionHashOf(cid as Cid),
    durationMs: thousandths(usage.durationMs),
    outcome: error?.code ?? "succeeded",
    pkpsUsed: pkpsUsed.map((pkp) => parseAddress(pkp) ?? ZERO_ADDRESS),
    startedAt,
  };
}

/** Milliseconds with three places, as every answer gives them. */
const thousandths = (ms: number): number => Math.round(ms * 1000) / 1000;

function runAnswer({ response, logs, error, usage }: ExecutorAnswer<"run">, costCents: number): Answer<"runAction"> {
  return {
    response: JSON.parse(response),
    logs,
    has_error: error !== undefined,
    ...(error === undefined ? {} : { error }),
    usage: { duration_ms: thousandths(usage.durationMs), limit_ms: usage.limitMs, cost_cents: costCents },
  };
}
