/** One run from request to answer: authenticate, resolve the code, authorize, execute; never trust the relayer. */
import { hash } from "node:crypto";
import type { z } from "zod";
import { KeywrightError } from "../protocol/errors";
import { Crowded, Preempted } from "../protocol/fairShare";
import { parseAddress } from "../protocol/ids";
import type { PkpId } from "../protocol/ids";
import {
  runKeyOf,
  runNotBeforeSchema,
  runStartSchema,
  type ExecutorAnswer,
  type ExecutorRequest,
} from "../protocol/executor";
import { parseJson } from "../protocol/json";
import type { RunLimits } from "../protocol/limits";
import { withReceipt } from "../protocol/receipt";
import {
  RunDenied,
  authorizeRun,
  isFresh,
  type Authorization,
  type Permitted,
  type RunQuestion,
} from "./access/authorize";
import type { Caller, Callers } from "./access/callers";
import type { Chain } from "./chain/chain";
import type { Code, CodeSource } from "./code/code";
import type { RunCode } from "./code/memory";
import type { Firing, Triggers } from "./triggers/triggers";
import { limitsOfRun } from "./limits";
import { FreeRuns } from "./freeRuns";
import { RunUse, type DecidedRun, type Receipts, type RunPayment } from "./receipts";
import { createOps, type OpsParts } from "./ops/ops";
import {
  PoolClosed,
  RunCancelled,
  type OpHandler,
  type RunJob,
  type RunOutcome,
  type SandboxPool,
} from "./sandbox/types";
import type { CallContext } from "./server";
import { defined } from "../protocol/defined";
import { within } from "../protocol/within";

export interface RunnerParts extends OpsParts {
  readonly callers: Callers;
  readonly code: Code;
  readonly pool: Pick<SandboxPool, "run">;
  readonly limits: RunLimits;
  readonly receipts: Receipts;
  readonly triggers: Pick<Triggers, "admit">;
}

type RunRequest = ExecutorRequest<"run">;

interface QueuedRun {
  readonly code: RunCode;
  readonly authorization: Permitted;
  /** When the contract was asked, in milliseconds of `performance.now()`. */
  readonly askedAt: number;
  readonly authorize: () => Promise<Permitted>;
  readonly pkpId: PkpId | undefined;
  readonly limits: RunLimits;
  readonly params: Buffer;
  readonly signal: AbortSignal;
  /** Aborted when the run need not begin any more. */
  readonly left: AbortSignal;
  readonly use: RunUse;
  readonly firing: Firing | undefined;
}

/** Whose run of what. */
interface ParsedRun {
  readonly caller: Pick<Caller, "ids">;
  readonly source: CodeSource;
  /** JSON text of an object, in UTF-8. */
  readonly params: Buffer;
  readonly pkpId: PkpId | undefined;
  /** Of a trigger. */
  readonly firing?: Firing;
}

/**
 * Checks a run's permission again when the run starts, if the first answer is too old. Until the answer arrives the
 * run's ops, fetches and imports wait, and its ops follow the newer decision; a denial ends the run and is returned to
 * the caller.
 */
class StartPermission {
  readonly #revoked = new AbortController();
  granted: Promise<Permitted>;
  readonly #first: Permitted;
  readonly #askedAt: number;
  readonly #authorize: () => Promise<Permitted>;

  constructor({ authorization, askedAt, authorize, signal }: QueuedRun) {
    this.#first = authorization;
    this.#askedAt = askedAt;
    this.#authorize = authorize;
    this.granted = Promise.resolve(authorization);
    signal.addEventListener("abort", () => this.#revoked.abort(signal.reason), { once: true });
    if (signal.aborted) this.#revoked.abort(signal.reason);
  }

  /** Aborted also when the caller disconnects. */
  get revoked(): AbortSignal {
    return this.#revoked.signal;
  }

  start(): void {
    if (isFresh(this.#askedAt)) return;
    this.granted = this.#again();
    this.granted.catch(() => this.#revoked.abort());
  }

  async #again(): Promise<Permitted> {
    const again = await this.#authorize();
    if (again.decision.accountId === this.#first.decision.accountId) return again;
    throw new KeywrightError("unknown_key", "The key has left the account that pays for this run.");
  }
}

export class Runner {
  /** Runs that have not ended, by the id of their request. */
  readonly #left = new Map<string, AbortController>();
  readonly #freeRuns = new FreeRuns();
  readonly #parts: RunnerParts;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  /**
   * A run without a limit is answered in two parts: the permission and, after the caller has confirmed the payment, the
   * outcome. It is not queued before that. The context's signal is aborted when the caller disconnects, which removes
   * the run from the queue or ends it.
   * @throws KeywrightError for refusals before any code ran; whatever the code does is an answer, not an error.
   */
  async run(request: RunRequest, context: CallContext): Promise<ExecutorAnswer<"run">> {
    const left = new AbortController();
    this.#left.set(context.requestId, left);
    try {
      return await this.#run(request, context, left.signal);
    } finally {
      if (this.#left.get(context.requestId) === left) this.#left.delete(context.requestId);
    }
  }

  /** The client of the request's run has gone: if it has not begun, it will not. */
  leaveQueue(requestId: string): ExecutorAnswer<"leaveQueue"> {
    this.#left.get(requestId)?.abort(notRun(new RunCancelled()));
    return {};
  }

  async #run(request: RunRequest, context: CallContext, left: AbortSignal): Promise<ExecutorAnswer<"run">> {
    const startedAt = performance.now();
    const parsed = await this.#parsed(request, context);
    try {
      return await this.#decided(parsed, request, context, { left, startedAt });
    } finally {
      parsed.source.code?.leave();
    }
  }

  async #decided(
    { caller, source, params, pkpId, firing }: ParsedRun,
    request: RunRequest,
    context: CallContext,
    { left, startedAt }: { readonly left: AbortSignal; readonly startedAt: number },
  ): Promise<ExecutorAnswer<"run">> {
    const { signal, log, requestId } = context;
    const likely = likelyPkp(this.#parsedParams(params));
    const ahead = likely === pkpId ? undefined : likely;
    const notBefore = notBeforeIn(request, context);
    const question = { cid: source.cid, pkpId, ahead, notBefore };
    const trigger = firing && { id: firing.triggerId, cause: firing.causeKey };
    const paramsSha256 = hash("sha256", params, "hex");
    const begun = { requestId, cid: source.cid, paramsSha256, trigger };
    const authorize = (): Promise<Permitted> =>
      this.#permitted(caller, question, firing).catch((error: unknown) => this.#refused(begun, error));
    const [authorization] = await Promise.all([authorize(), notBefore]);
    const { receipts } = this.#parts;
    // After the permission is on its way.
    setImmediate(() => receipts.prepare(authorization.decision));
    const authorizedAt = performance.now();
    const limits = limitsOfRun(this.#parts.limits, request.limitMs ?? (await confirmedMs(authorization, context)));
    // Only after the payment is confirmed: fetching code from a gateway is paid work.
    const user = { account: authorization.decision.accountId, signals: [signal, left] };
    const use = new RunUse();
    const queued = { authorization, askedAt: startedAt, authorize, pkpId, limits, params, signal, left, use, firing };
    const { outcome, granted } = await this.#parts.code.use(source, user, (code) => this.#runCode({ ...queued, code }));
    log.debug(
      {
        requestId,
        authorizeMs: authorizedAt - startedAt,
        poolMs: performance.now() - authorizedAt,
        durationMs: outcome.durationMs,
        cid: source.cid,
      },
      "ran",
    );
    const isFree = this.#freeRuns.isFree(authorization.decision.accountId, outcome);
    const payment = { limitMs: limits.wallMs, isFree };
    const receipt = await receipts.ofRun({ ...begun, ...granted }, outcome, payment, use);
    return answerOf(outcome, payment, authorization, use, receipt);
  }

  /** A trigger's definition says what runs; any other request does so itself. */
  async #parsed(request: RunRequest, { large }: CallContext): Promise<ParsedRun> {
    const { credential } = request;
    const given = paramsOf(request);
    if (credential.type !== "trigger") {
      const [caller, source] = await Promise.all([
        this.#parts.callers.resolve(credential),
        this.#parts.code.identify(request, large, given.length),
      ]);
      return { caller, source, params: given, pkpId: pkpOf(request) };
    }
    const firing = await this.#parts.triggers.admit(credential);
    const { keyId, cid } = firing;
    const params = Buffer.from(firing.params);
    request.cid = cid;
    const source = await this.#parts.code.identify(request, large, params.length);
    return { caller: { ids: [keyId] }, source, params, pkpId: undefined, firing };
  }

  async #permitted(caller: Pick<Caller, "ids">, question: RunQuestion, firing?: Firing): Promise<Permitted> {
    const { chain } = this.#parts;
    const asked = authorizeRun(chain, caller, question);
    if (firing === undefined) return asked;
    asked.catch(() => undefined);
    const firedBy = firing.by && (await whoFires(chain, firing.by, question, firing));
    return { ...requireOwnAccount(await asked, firing), ...defined({ firedBy }) };
  }

  async #refused(begun: Omit<DecidedRun, "key" | "decision">, error: unknown): Promise<never> {
    if (!(error instanceof RunDenied)) throw error;
    const { key, decision } = error;
    const receipt = await this.#parts.receipts.ofRefusal({ ...begun, key, decision }, error.code);
    throw new RunDenied(withReceipt(error, receipt), key, decision);
  }

  async #runCode(run: QueuedRun): Promise<{ outcome: RunOutcome; granted: Permitted }> {
    const { code, authorization, pkpId, limits, params, firing } = run;
    const { keyId, cid, decision } = authorization;
    const permission = new StartPermission(run);
    const opsOf = (granted: Permitted): OpHandler =>
      createOps(this.#parts, granted, pkpId, (used) => run.use.pkps.add(used));
    let ops: OpHandler | undefined;
    let isStarted = false;
    firing?.begin();
    const job: RunJob = {
      account: decision.accountId,
      // Its firings take their turn as another account's would: the account's own runs do not wait for them.
      ...(firing?.isUnattended === true ? { share: `${decision.accountId} triggers` } : {}),
      key: keyId,
      code,
      cid,
      params,
      limits,
      ops: async (call) => {
        const granted = await permission.granted;
        const answer = await (ops ??= opsOf(granted))(call);
        if (answer.ok) run.use.count(call.name);
        return answer;
      },
      permitted: () => permission.granted,
      signal: permission.revoked,
      left: code.over === undefined ? run.left : AbortSignal.any([run.left, code.over]),
      onStarted: () => {
        isStarted = true;
        run.use.startedAtMs = Date.now();
        permission.start();
      },
    };
    try {
      const outcome = await this.#parts.pool.run(job);
      return { outcome, granted: await permission.granted };
    } catch (error) {
      if (!isStarted) firing?.cameToNothing();
      await permission.granted;
      throw code.over?.reason instanceof Preempted && error instanceof RunCancelled ? new Crowded(1) : notRun(error);
    }
  }

  #parsedParams(params: Buffer): object {
    const { paramsBytes } = this.#parts.limits;
    if (params.length > paramsBytes)
      throw new KeywrightError(
        "params_too_large",
        `js_params is ${params.length} bytes; at most ${paramsBytes} are accepted.`,
      );
    const parsed = parseJson(params.toString());
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
    throw new KeywrightError("invalid_value", "js_params must be a JSON object.");
  }
}

/**
 * Most actions that use a PKP get its id as `pkpId`: the contract is asked about it together with the run, so that the
 * action does not wait. A denial matters only if the PKP is used.
 */
function likelyPkp(params: { pkpId?: unknown }): PkpId | undefined {
  return typeof params.pkpId === "string" ? (parseAddress(params.pkpId) as PkpId | undefined) : undefined;
}

/** Takes them out of the request, which lives as long as the run. */
function paramsOf(request: RunRequest): Buffer {
  const bytes = Buffer.from(request.params);
  request.params = "";
  return bytes;
}

function pkpOf({ pkpId }: RunRequest): PkpId | undefined {
  return pkpId === undefined ? undefined : (parseAddress(pkpId) as PkpId | undefined);
}

/** Whoever may run the action with a key of the same account may also fire its trigger, or run it again. */
async function whoFires(
  chain: Chain,
  by: Pick<Caller, "ids">,
  question: RunQuestion,
  { accountId }: Firing,
): Promise<Pick<Permitted, "keyId" | "key">> {
  const { keyId, key, decision } = await authorizeRun(chain, by, { ...question, ahead: undefined }).catch(
    (error: unknown) => {
      throw error instanceof KeywrightError && !error.retryable ? mayNotFire() : error;
    },
  );
  if (decision.accountId === accountId) return { keyId, key };
  throw mayNotFire();
}

const mayNotFire = (): KeywrightError =>
  new KeywrightError("not_authorized", "This key may not run the trigger's action in its account.");

/** Another account may have set the id of this trigger's key as its own: that is not whose trigger it is. */
function requireOwnAccount(permitted: Permitted, { accountId }: Firing): Permitted {
  if (permitted.decision.accountId === accountId) return permitted;
  throw new KeywrightError("unknown_key", "The trigger's key is not one of the account that the trigger is of.");
}

const GONE = { retryAfterSeconds: 1 };

/** How long a run waits for the next part of its request: a permission for its payment. */
const PART_WAIT_MS = 15_000;

/** The block that its decision may not be older than: the contract is asked meanwhile. */
function notBeforeIn({ limitMs, notBefore = 0 }: RunRequest, { rest }: CallContext): Promise<number> {
  if (limitMs !== undefined) return Promise.resolve(notBefore);
  const named = partOf(runNotBeforeSchema, rest()).then((part) => part.notBefore);
  // It may be waited for by nobody where the contract cannot be asked.
  named.catch(() => undefined);
  return named;
}

/** The paid time: nothing runs before the relayer has confirmed it. */
async function confirmedMs({ key }: Permitted, { rest, permit }: CallContext): Promise<number> {
  permit({ key: runKeyOf(key) });
  return (await partOf(runStartSchema, rest())).limitMs;
}

async function partOf<T>(schema: z.ZodType<T>, rest: Promise<unknown>): Promise<T> {
  const part = schema.safeParse(
    await within(PART_WAIT_MS, rest, () => {
      throw new KeywrightError("timed_out", "The rest of the run's request did not come in time.");
    }),
  );
  if (part.success) return part.data;
  throw new KeywrightError("invalid_body", "A run's request is followed by notBefore, then by limitMs.");
}

function answerOf(
  outcome: RunOutcome,
  { limitMs, isFree }: RunPayment,
  { cid }: Authorization,
  use: RunUse,
  receipt: string,
): ExecutorAnswer<"run"> {
  const { response, signatures, logs, error, durationMs, fault } = outcome;
  const failed = error === undefined ? {} : { error };
  return {
    response,
    ...defined({ signatures }),
    logs,
    ...failed,
    usage: { durationMs, limitMs },
    serviceFault: fault === "service",
    isFree,
    cid,
    pkpsUsed: [...use.pkps],
    receipt,
  };
}

function notRun(error: unknown): unknown {
  if (error instanceof RunCancelled)
    return new KeywrightError("queue_full", "The run left the queue: its client has gone.", {}, GONE);
  return error instanceof PoolClosed
    ? new KeywrightError("shutting_down", "The service is shutting down.", {}, { retryAfterSeconds: 5 })
    : error;
}
