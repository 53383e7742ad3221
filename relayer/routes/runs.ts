/**
 * Runs actions: the executor asks the contract whether the run is permitted and names the account, credit is reserved,
 * the executor runs the action, the time used is charged. A run continues and is charged even if the client
 * disconnects, unless it still waits in the executor's queue.
 */
import { KeywrightError } from "../../protocol/errors";
import type { PkpId } from "../../protocol/ids";
import type { ExecutorAnswer } from "../../protocol/executor";
import { RECEIPT_HEADER } from "../../protocol/receipt";
import type { PkpReference } from "../../protocol/http";
import type { KeyState } from "../../protocol/keyState";
import type { Act } from "../act";
import { DeniedRun, type AskedRun } from "../executor/askedRun";
import type { RunReservation } from "../credits/types";
import type { Answer, Call, Deciding, HandlersOf } from "../middleware/call";
import { alreadyRan } from "../middleware/idempotency";
import { settleRan, thousandths } from "../ran";
import type { RouteDeps } from "./deps";
import { pkpAddress } from "./references";
import { EarlyReservation, PermittedRuns, spenderOf, type RunText } from "./runReservation";
import { defined } from "../../protocol/defined";

type Run = Call<"runAction">;

export function runRoutes(deps: RouteDeps): HandlersOf<"runAction"> {
  const permitted = new PermittedRuns();
  return {
    runAction: async (call) => {
      const { deciding } = call;
      const limitMs = await wantedMs(deps, call);
      const name = permitted.nameOf(call.caller.actorId, whatOf(call));
      // With an `Idempotency-Key`, reserve only under that operation's id, once it is known not to be done yet.
      const known = call.attemptKey === undefined ? permitted.keyOf(name) : undefined;
      const early =
        known === undefined
          ? undefined
          : EarlyReservation.begin(deps.credits, { caller: call.caller, key: known, limitMs });
      try {
        const { asked, key } = await permissionFor(deps, call, early).catch((error: unknown) => {
          permitted.forget(name);
          return refuse(deciding, error);
        });
        const run = { asked, early, limitMs };
        const begun = deciding.named(key).then((caller) =>
          deciding.as(caller, (act) => {
            permitted.note(name, key);
            return paidRun(deps, { ...call, caller, act }, run);
          }),
        );
        return await begun.finally(() => asked.abandon());
      } finally {
        await early?.end();
      }
    },
  };
}

async function permissionFor(
  deps: RouteDeps,
  call: Run,
  early: EarlyReservation | undefined,
): Promise<{ asked: AskedRun; key: KeyState }> {
  const asked = await ask(deps, call);
  early?.prepay(asked);
  try {
    const key = await asked.permission;
    if (!asked.isVoid) return { asked, key };
  } catch (error) {
    asked.abandon();
    throw error;
  }
  // The key has changed since it was permitted the last time.
  await early?.end();
  return permissionFor(deps, call, undefined);
}

async function wantedMs({ executorInfo }: RouteDeps, { body }: Run): Promise<number> {
  const { limits } = await executorInfo();
  return Math.min(body.timeout_ms ?? Infinity, limits["wallMs"] ?? Infinity);
}

/** The subject of a permission, as text. */
function whatOf({ body: { code, action_ipfs_cid, ipfs_id, pkp_id: pkp } }: Run): RunText {
  const pkpText = pkp === undefined ? undefined : "address" in pkp ? pkp.address : String(pkp.number);
  return { code, cid: action_ipfs_cid ?? ipfs_id, pkp: pkpText };
}

/**
 * The executor decides on its input; the relayer adds what only it knows: the block of the last write, and the PKP
 * behind a number.
 */
async function ask({ chain, executor }: RouteDeps, { caller, body, requestId, deciding }: Run): Promise<AskedRun> {
  const { credential } = caller;
  if (credential === undefined)
    throw new KeywrightError("missing_credential", "A run needs a key or an identity token.");
  const code = body.code === undefined ? { cid: body.action_ipfs_cid ?? body.ipfs_id } : { code: body.code };
  const pkpId = body.pkp_id === undefined ? {} : { pkpId: await pkpOf(chain, body.pkp_id, deciding) };
  const notBefore = await chain.lastWrite();
  const question = { credential, ...code, params: body.js_params ?? "{}", ...pkpId, notBefore };
  return executor.askRun(question, { requestId, account: caller.accountId });
}

/** A PKP number is relative to the account, which therefore has to be confirmed first. */
async function pkpOf(chain: RouteDeps["chain"], reference: PkpReference, { identified }: Deciding): Promise<PkpId> {
  return "address" in reference ? reference.address : pkpAddress(chain, (await identified()).accountId, reference);
}

/**
 * Orders refusals: an unknown key precedes all others; any other refusal is returned after authentication and the
 * idempotency check. Failures of the service itself are not refusals.
 */
async function refuse(deciding: Deciding, error: unknown): Promise<never> {
  if (!(error instanceof KeywrightError) || error.status >= 500) throw error;
  if (error.status === 401) {
    deciding.forget();
    throw new KeywrightError(error.code, error.detail);
  }
  const caller = await (error instanceof DeniedRun ? deciding.named(error.key) : deciding.identified());
  await deciding.as(caller, () => Promise.reject(error));
  throw error;
}

/**
 * An earlier request under this key ended with unknown outcome: if it got as far as reserving credit, the action may
 * have run and is not run again.
 */
async function requireNotRun({ credits }: RouteDeps, act: Act): Promise<void> {
  const earlier = await credits.runs.find(act.id);
  if (earlier === undefined) return;
  const { run } = earlier;
  throw alreadyRan(
    run === undefined
      ? {}
      : {
          has_error: run.outcome !== "succeeded",
          usage: { duration_ms: run.durationMs, cost_cents: run.costCents },
          receipt_sha256: run.receiptSha256,
        },
  );
}

interface Wanted {
  readonly asked: AskedRun;
  readonly early: EarlyReservation | undefined;
  readonly limitMs: number;
}

/**
 * The reservation belongs to the run, not to the response: once the guest was started, it is always settled.
 */
async function paidRun(
  deps: RouteDeps,
  call: Run,
  { asked, early, limitMs: wanted }: Wanted,
): Promise<Answer<"runAction">> {
  if (call.act?.isRepeated === true) await requireNotRun(deps, call.act);
  const reserve = async (): Promise<RunReservation> => {
    // The early reservation was made for another spender or cap, and holds credit that this run may need.
    await early?.end();
    return deps.credits.reservations.reserveRun({ ...spenderOf(call.caller), limitMs: wanted, runId: call.act?.id });
  };
  const { reservationId, limitMs } = await (early?.takeFor(call.caller) ?? reserve());
  const startedAt = early?.prepaidAt ?? new Date();
  call.act?.begins();
  const outcome = asked.start(limitMs);
  const leave = (): void => asked.leave();
  if (call.signal.aborted) leave();
  call.signal.addEventListener("abort", leave, { once: true });
  const ran = await outcome.catch(async (error: unknown) => {
    // Every attempt reserves under the act's id, which succeeds once: no other attempt has run or will run.
    if (!asked.mayHaveRun) call.act?.cameToNothing();
    await deps.credits.reservations.releaseRun(reservationId);
    throw error;
  });
  deps.onRan({ error: ran.error?.code, seconds: ran.usage.durationMs / 1_000, serviceFault: ran.serviceFault });
  const { accountId, actorId: keyId } = call.caller;
  const by = { accountId, keyId, requestId: call.requestId, startedAt };
  const costCents = await settleRan(deps.credits, reservationId, ran, by);
  call.setHeader(RECEIPT_HEADER, ran.receipt);
  if (call.act !== undefined) call.act.receipt = ran.receipt;
  return { ...runAnswer(ran, costCents), ...(call.body.receipt === true ? { receipt: ran.receipt } : {}) };
}

function runAnswer(answer: ExecutorAnswer<"run">, costCents: number): Answer<"runAction"> {
  const { response, signatures, logs, error, usage } = answer;
  return {
    response: JSON.parse(response),
    ...(signatures === undefined ? {} : { signatures: JSON.parse(signatures) as Record<string, unknown> }),
    logs,
    has_error: error !== undefined,
    ...defined({ error }),
    usage: { duration_ms: thousandths(usage.durationMs), limit_ms: usage.limitMs, cost_cents: costCents },
  };
}
