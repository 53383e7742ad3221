/**
 * Runs actions: the executor asks the contract whether the run is permitted and names the account, credit is reserved,
 * the executor runs the action, the time used is charged. Where the same run was permitted the last time, credit is
 * reserved ahead. A run continues and is charged even if the client disconnects, unless it still waits in the
 * executor's queue.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { KeywrightError } from "../../protocol/errors";
import type { PkpId } from "../../protocol/ids";
import type { KeyState } from "../../protocol/keyState";
import type { ExecutorAnswer } from "../../protocol/executor";
import { RECEIPT_HEADER } from "../../protocol/receipt";
import type { PkpReference } from "../../protocol/http";
import type { IdempotentOperation } from "../idempotentOperation";
import { DeniedRun, type PaidRun } from "../executor/runExchange";
import type { RunQuestion } from "../executor/runBody";
import type { Answer, Call, Deciding, HandlersOf } from "../middleware/call";
import { alreadyRan } from "../middleware/idempotency";
import { settleRan, thousandths } from "../ran";
import type { RouteDeps } from "./deps";
import { pkpAddress } from "./references";
import { defined } from "../../protocol/defined";

type Run = Call<"runAction">;

export function runRoutes(deps: RouteDeps): HandlersOf<"runAction"> {
  /** Runs that were permitted the last time, and the state of their key then. */
  const permitted = new LRUCache<string, KeyState>({ max: MAX_PERMITTED });
  return {
    runAction: async (call) => {
      const asked = await askedIn(deps, call);
      const question = afterLastWrite(deps, asked);
      const name = nameOf(call, asked);
      if (name === undefined) return runAsPermitted(deps, call, await question);
      const known = permitted.get(name);
      const ran = known && (await runAhead(deps, call, question, known));
      if (ran !== undefined) return ran;
      permitted.delete(name);
      return runAsPermitted(deps, call, await question, (key) => permitted.set(name, key));
    },
  };
}

const MAX_PERMITTED = 10_000;
/** Of code and params, in characters, of six bytes at most: the executor reads such requests at once. */
const MAX_AHEAD_CHARS = 10 * 1_024;

/**
 * What the contract is asked about a run that may be made ahead. Not that of an identity, whose role is looked up, nor
 * one under an `Idempotency-Key`, which is looked up first.
 */
function nameOf({ presented, attemptKey }: Run, { code, cid, pkpId, params }: AskedRun): string | undefined {
  const { key } = presented;
  const isSmall = (code?.length ?? 0) + params.length <= MAX_AHEAD_CHARS;
  if (key === undefined || attemptKey !== undefined || !isSmall) return undefined;
  return hash("sha256", JSON.stringify([key.id, code, cid, pkpId]), "base64");
}

/**
 * Where the same run was permitted the last time: reserves credit for whom its key belonged to then, and has the
 * executor decide and run at once if that is still so. Undefined if it is not, or if the run is refused: it has had no
 * effect, nothing is held, and it is requested as any other, which also puts the refusal in its place.
 */
async function runAhead(
  deps: RouteDeps,
  call: Run,
  question: Promise<RunQuestion>,
  key: KeyState,
): Promise<Answer<"runAction"> | undefined> {
  const { deciding, requestId } = call;
  // What is left of the body is small.
  call.lendBody(() => undefined);
  const caller = deciding.expected(key);
  const run = deps.executor.askPaidRun(question, key, { requestId });
  try {
    return await deciding.as(caller, () => paidRun(deps, { ...call, caller }, run));
  } catch (error) {
    if (!(error instanceof KeywrightError) || error.status >= 500 || error.code === "queue_full") throw error;
    return undefined;
  }
}

async function runAsPermitted(
  deps: RouteDeps,
  call: Run,
  question: RunQuestion,
  onPermitted?: (key: KeyState) => void,
): Promise<Answer<"runAction">> {
  const { deciding, requestId } = call;
  const asked = deps.executor.askRun(question, { requestId, account: call.caller.accountId });
  try {
    const key = await asked.permission
      .finally(() => call.lendBody(() => dropLarge(question, call)))
      .catch((error: unknown) => refuse(deciding, error));
    const caller = await deciding.named(key);
    const answer = await deciding.as(caller, (operation) => paidRun(deps, { ...call, caller, operation }, asked));
    onPermitted?.(key);
    return answer;
  } finally {
    asked.abandon();
  }
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

type AskedRun = Omit<RunQuestion, "notBefore">;

/** The executor decides on its input; the relayer adds what only it knows: here the PKP behind a number. */
async function askedIn({ chain }: RouteDeps, { caller, body, deciding }: Run): Promise<AskedRun> {
  const { credential } = caller;
  if (credential === undefined)
    throw new KeywrightError("missing_credential", "A run needs a key or an identity token.");
  const code = body.code === undefined ? { cid: body.action_ipfs_cid ?? body.ipfs_id } : { code: body.code };
  const pkpId = body.pkp_id === undefined ? {} : { pkpId: await pkpOf(chain, body.pkp_id, deciding) };
  return { credential, ...code, params: body.js_params ?? "{}", ...pkpId };
}

/** And the block of the last write. Where credit is reserved ahead, the store is asked for both at once. */
function afterLastWrite({ chain }: RouteDeps, asked: AskedRun): Promise<RunQuestion> {
  // The same object: what is dropped of it once the executor has it must be held nowhere else.
  const question = chain.lastWrite().then((notBefore) => Object.assign(asked, { notBefore }));
  // Nobody waits for it where no credit can be reserved.
  question.catch(() => undefined);
  return question;
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
async function paidRun(deps: RouteDeps, call: Run, asked: PaidRun): Promise<Answer<"runAction">> {
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
