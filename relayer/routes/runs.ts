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
import type { IdempotentOperation } from "../idempotentOperation";
import { DeniedRun, type RequestedRun } from "../executor/runExchange";
import type { RunQuestion } from "../executor/runBody";
import type { Answer, Call, Deciding, HandlersOf } from "../middleware/call";
import { alreadyRan } from "../middleware/idempotency";
import { settleRan, thousandths } from "../ran";
import type { RouteDeps } from "./deps";
import { pkpAddress } from "./references";
import { defined } from "../../protocol/defined";

type Run = Call<"runAction">;

export function runRoutes(deps: RouteDeps): HandlersOf<"runAction"> {
  return {
    runAction: async (call) => {
      const { deciding, requestId } = call;
      const question = await questionOf(deps, call);
      const asked = deps.executor.askRun(question, { requestId, account: call.caller.accountId });
      try {
        const key = await asked.permission
          .finally(() => call.lendBody(() => dropLarge(question, call)))
          .catch((error: unknown) => refuse(deciding, error));
        const caller = await deciding.named(key);
        return await deciding.as(caller, (operation) => paidRun(deps, { ...call, caller, operation }, asked));
      } finally {
        asked.abandon();
      }
    },
  };
}

/**
 * The executor has it, or will not run it: the code is only of use for storing it. A run by CID may be asked for again,
 * with its params.
 */
function dropLarge(question: RunQuestion, { body }: Run): void {
  if (question.code !== undefined) {
    question.params = "";
    delete body.js_params;
  }
  delete question.code;
  delete body.code;
}

/**
 * The executor decides on its input; the relayer adds what only it knows: the block of the last write, and the PKP
 * behind a number.
 */
async function questionOf({ chain }: RouteDeps, { caller, body, deciding }: Run): Promise<RunQuestion> {
  const { credential } = caller;
  if (credential === undefined)
    throw new KeywrightError("missing_credential", "A run needs a key or an identity token.");
  const code = body.code === undefined ? { cid: body.action_ipfs_cid ?? body.ipfs_id } : { code: body.code };
  const pkpId = body.pkp_id === undefined ? {} : { pkpId: await pkpOf(chain, body.pkp_id, deciding) };
  return { credential, ...code, params: body.js_params ?? "{}", ...pkpId, notBefore: chain.lastWrite() };
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

async function wantedMs({ executorInfo }: RouteDeps, { body }: Run): Promise<number> {
  const { limits } = await executorInfo();
  return Math.min(body.timeout_ms ?? Infinity, limits["wallMs"] ?? Infinity);
}

/**
 * An earlier request under this key ended with unknown outcome: if it got as far as reserving credit, the action may
 * have run and is not run again.
 */
async function requireNotRun({ credits }: RouteDeps, operation: IdempotentOperation): Promise<void> {
  const earlier = await credits.runs.find(operation.id);
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

/**
 * The reservation belongs to the run, not to the response: once the guest was started, it is always settled.
 */
async function paidRun(deps: RouteDeps, call: Run, asked: RequestedRun): Promise<Answer<"runAction">> {
  if (call.operation?.isRepeated === true) await requireNotRun(deps, call.operation);
  const { accountId, actorId, keyId, capCents } = call.caller;
  const wanted = { limitMs: await wantedMs(deps, call), runId: call.operation?.id, origin: call.header("origin") };
  const reserved = await deps.credits.reservations.reserveRun({ accountId, keyId, capCents, ...wanted });
  const { reservationId, limitMs } = reserved;
  const startedAt = new Date();
  call.operation?.begins();
  const outcome = call.signal.aborted ? Promise.reject(clientLeft()) : asked.start(limitMs);
  const leave = (): void => asked.leave();
  call.signal.addEventListener("abort", leave, { once: true });
  const ran = await outcome.catch(async (error: unknown) => {
    // Every attempt reserves under the operation's id, which succeeds once: no other attempt has run or will run.
    if (!asked.mayHaveRun) call.operation?.cameToNothing();
    await deps.credits.reservations.releaseRun(reservationId);
    throw error;
  });
  deps.onRan({ error: ran.error?.code, seconds: ran.usage.durationMs / 1_000, serviceFault: ran.serviceFault });
  const by = { accountId, keyId: actorId, requestId: call.requestId, startedAt };
  const costCents = await settleRan(deps.credits, reservationId, ran, by);
  call.setHeader(RECEIPT_HEADER, ran.receipt);
  if (call.operation !== undefined) call.operation.receipt = ran.receipt;
  return { ...runAnswer(ran, costCents), ...(call.body.receipt === true ? { receipt: ran.receipt } : {}) };
}

const clientLeft = (): KeywrightError => new KeywrightError("queue_full", "The client left before the run began.");

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
