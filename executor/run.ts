/**
 * One run from request to answer: who asks, which code, may he, then the sandbox; nothing is taken on the relayer's word.
 * Source: specification §1 "Execution check"; house "Run an action".
 */
import { KeywrightError } from "../protocol/errors";
import { parseAddress } from "../protocol/ids";
import type { PkpId } from "../protocol/ids";
import { runStartSchema, type ExecutorAnswer, type ExecutorRequest } from "../protocol/executor";
import type { RunLimits } from "../protocol/limits";
import { authorizePkp, authorizeRun, isFresh, type Authorization } from "./authorize";
import type { Callers } from "./callers";
import type { Code } from "./code/code";
import { limitsOfRun } from "./limits";
import { createOps, type AskedAhead, type OpsParts } from "./ops/ops";
import { PoolClosed, QueueFull, type RunJob, type RunOutcome, type SandboxPool } from "./sandbox/types";
import type { CallContext } from "./server";

export interface RunnerParts extends OpsParts {
  readonly callers: Callers;
  readonly code: Code;
  readonly pool: Pick<SandboxPool, "run">;
  readonly limits: RunLimits;
}

type RunRequest = ExecutorRequest<"run">;

interface QueuedRun {
  readonly code: string;
  readonly authorization: Authorization;
  /** When the contract was asked, on the clock of `performance`. */
  readonly askedAt: number;
  readonly ahead: AskedAhead | undefined;
  readonly authorize: () => Promise<Authorization>;
  readonly pkpId: PkpId | undefined;
  readonly limits: RunLimits;
  readonly params: string;
  readonly signal: AbortSignal;
  /** Filled with the PKPs its ops use. */
  readonly used: Set<PkpId>;
}

/**
 * A run's permission at the moment it starts. While the second question is open the run gets no op served; a refusal ends it, and is what its caller is told.
 */
class StartPermission {
  readonly #revoked = new AbortController();
  granted: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly askedAt: number,
    private readonly authorize: () => Promise<unknown>,
  ) {}

  get revoked(): AbortSignal {
    return this.#revoked.signal;
  }

  start(): void {
    if (isFresh(this.askedAt)) return;
    this.granted = this.authorize();
    this.granted.catch(() => this.#revoked.abort());
  }
}

export class Runner {
  constructor(private readonly parts: RunnerParts) {}

  /**
   * The context's signal is aborted when the caller went away: it frees the place in the queue, or ends the run.
   * @throws KeywrightError what was refused before any code ran; whatever the code does is an answer, not an error.
   */
  async run(request: RunRequest, { signal, log, rest }: CallContext): Promise<ExecutorAnswer<"run">> {
    const startedAt = performance.now();
    this.#requireParams(request.params);
    const pkpId = pkpOf(request);
    const [caller, source] = await Promise.all([this.parts.callers.resolve(request.credential), this.parts.code.identify(request)]);
    const authorize = (): Promise<Authorization> => authorizeRun(this.parts.chain, caller, source.cid, pkpId);
    const authorization = await authorize();
    const authorizedAt = performance.now();
    const ahead = this.#askAhead(request.params, authorization, pkpId);
    const limits = limitsOfRun(this.parts.limits, request.limitMs ?? (await limitOf(rest)));
    // Only now: code that is fetched from a gateway is work that somebody pays for.
    const code = await this.parts.code.load(source);
    const used = new Set<PkpId>();
    const outcome = await this.#runCode({ code, authorization, askedAt: startedAt, ahead, authorize, pkpId, limits, params: request.params, signal, used });
    log.debug({ authorizeMs: authorizedAt - startedAt, poolMs: performance.now() - authorizedAt, durationMs: outcome.durationMs, cid: source.cid }, "ran");
    return answerOf(outcome, limits.wallMs, authorization, used);
  }

  async #runCode(run: QueuedRun): Promise<RunOutcome> {
    const { code, authorization, pkpId, limits, params, signal } = run;
    const { keyId, cid, decision } = authorization;
    const ops = createOps(this.parts, authorization, pkpId, run.ahead, (used) => run.used.add(used));
    const permission = new StartPermission(run.askedAt, run.authorize);
    const job: RunJob = {
      account: decision.accountId,
      key: keyId,
      code,
      cid,
      params,
      limits,
      ops: async (call) => (await permission.granted, ops(call)),
      signal: AbortSignal.any([signal, permission.revoked]),
      onStarted: () => permission.start(),
    };
    try {
      const outcome = await this.parts.pool.run(job);
      await permission.granted;
      return outcome;
    } catch (error) {
      await permission.granted;
      throw notRun(error);
    }
  }

  /** Most actions that use a PKP are told which one as `pkpId`: the contract is asked about it while the run is paid for, not while the action waits. */
  #askAhead(params: string, authorization: Authorization, pkpId: PkpId | undefined): AskedAhead | undefined {
    const { pkpId: text } = JSON.parse(params) as { pkpId?: unknown };
    const named = typeof text === "string" ? (parseAddress(text) as PkpId | undefined) : undefined;
    if (named === undefined || named === pkpId) return undefined;
    const decision = authorizePkp(this.parts.chain, authorization, named);
    // A refusal counts only where the PKP is used.
    decision.catch(() => undefined);
    return { pkpId: named, decision, askedAt: performance.now() };
  }

  #requireParams(params: string): void {
    const bytes = Buffer.byteLength(params, "utf8");
    const { paramsBytes } = this.parts.limits;
    if (bytes > paramsBytes) throw new KeywrightError("params_too_large", `js_params is ${bytes} bytes; at most ${paramsBytes} are accepted.`);
    if (!isJsonObject(params)) throw new KeywrightError("invalid_value", "js_params must be a JSON object.");
  }
}

function pkpOf({ pkpId }: RunRequest): PkpId | undefined {
  return pkpId === undefined ? undefined : (parseAddress(pkpId) as PkpId | undefined);
}

/** Nothing runs before the relayer has said for how long it is paid for. */
async function limitOf(rest: CallContext["rest"]): Promise<number> {
  const start = runStartSchema.safeParse(await rest());
  if (!start.success) throw new KeywrightError("invalid_body", "A run needs limitMs: with the request, or as its second part.");
  return start.data.limitMs;
}

function answerOf(outcome: RunOutcome, limitMs: number, { cid }: Authorization, used: ReadonlySet<PkpId>): ExecutorAnswer<"run"> {
  const { response, logs, error, durationMs, fault } = outcome;
  const failed = error === undefined ? {} : { error };
  return { response, logs, ...failed, usage: { durationMs, limitMs }, faultIsOurs: fault === "ours", cid, pkpsUsed: [...used] };
}

function notRun(error: unknown): unknown {
  if (error instanceof QueueFull) {
    return new KeywrightError("queue_full", "The queue for runs is full at the moment.", {}, { retryAfterSeconds: error.retryAfterSeconds });
  }
  return error instanceof PoolClosed ? new KeywrightError("shutting_down", "The service is shutting down.", {}, { retryAfterSeconds: 5 }) : error;
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
