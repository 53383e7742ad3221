/**
 * Makes one firing: the executor checks the cause and asks the contract, credit is reserved, the firing is marked as
 * begun, the executor runs the action, the time used is charged. The keyholder never returns the key; the relayer has
 * only the sealed definition.
 */
import { KeywrightError, type ErrorCode } from "../../protocol/errors";
import type { ExecutorAnswer, TriggerCredential } from "../../protocol/executor";
import type { KeyState } from "../../protocol/keyState";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import type { Cause } from "../../protocol/trigger";
import type { Credits } from "../credits";
import type { RunRequest } from "../credits/types";
import type { RequestedRun } from "../executor/runExchange";
import type { Executor } from "../executor/client";
import { messageOf, settleRan, thousandths } from "../ran";
import { runIdOf, type Firings } from "./firings";
import type { Claimed, Fired } from "./types";

export interface FireParts {
  readonly executor: Pick<Executor, "askRun">;
  readonly credits: Pick<Credits, "reservations">;
  readonly firings: Pick<Firings, "definition" | "begin" | "retry" | "end" | "lose">;
  /** The block of the last answered write. */
  readonly lastWrite: () => Promise<number>;
  /** Wall time of a run, in ms. */
  readonly limitMs: () => Promise<number>;
  readonly onRan: (ran: ExecutorAnswer<"run">) => void;
  /** The run begins: so many seconds after it was due. */
  readonly onBegun: (lateSeconds: number) => void;
  readonly nowMs: () => number;
  /** The executor has the definition, or will not get it. */
  readonly onSent?: () => void;
}

const HOUR_MS = 3_600_000;
const FIRST_PAUSE_MS = 500;
/** Of one that is young: a due time may begin five minutes late. */
const YOUNG_PAUSE_MS = 30_000;
/** Of its age: whatever lasts is asked about seldom, since nobody pays for refusals. */
const PAUSE_OF_AGE = 1 / 10;
const MAX_PAUSE_MS = 5 * 60_000;
/** A log may be in a block that the keyholder's endpoints do not have yet, or not any more. */
const LOG_WAIT_MS = 10 * 60_000;

/** A run by hand: its credential is not stored. */
export interface ByHand {
  readonly cause: Cause;
  /** Of a usage key that asks for it: it pays within its own cap and limits, as for any run. */
  readonly spender: Omit<RunRequest, "limitMs" | "runId"> | undefined;
  /** Nobody waits for it any more: if it has not begun it leaves the queue, unpaid. */
  readonly signal?: AbortSignal | undefined;
}

/** The row was taken from this instance. */
class Lost extends Error {
  override readonly name = "Lost";
}

/** @returns how it ended; undefined if another attempt will be made. */
export async function fire(parts: FireParts, claimed: Claimed, by?: ByHand): Promise<Fired | undefined> {
  const asked = parts.executor.askRun(await questionOf(parts, claimed, by), {
    requestId: claimed.id,
    account: claimed.accountId,
  });
  const fired = await run(parts, claimed, asked, by).catch((error: unknown) => {
    asked.abandon();
    return endOf(parts, claimed, asked, error);
  });
  if (fired !== undefined) await parts.firings.end(claimed, fired);
  return fired;
}

async function questionOf({ firings, lastWrite }: FireParts, claimed: Claimed, by?: ByHand) {
  const { accountId } = claimed;
  const { sealed, cid, code } = await firings.definition(claimed);
  const cause = by?.cause ?? (claimed.cause as Cause);
  const credential: TriggerCredential = { type: "trigger", accountId, sealed, cause };
  // Awaited here: a store that fails is no outcome of a firing.
  const notBefore = Promise.resolve(await lastWrite());
  return { credential, ...(code === undefined ? { cid } : { code }), params: "{}", notBefore };
}

async function run(parts: FireParts, claimed: Claimed, asked: RequestedRun, by: ByHand | undefined): Promise<Fired> {
  const { credits } = parts;
  const key = await asked.permission.finally(parts.onSent);
  const runId = runIdOf(claimed);
  const { limitMs } = await credits.reservations.reserveRun({
    ...(by?.spender ?? spenderOf(key)),
    limitMs: await parts.limitMs(),
    runId,
  });
  const startedAt = new Date();
  const ran = await begin(parts, claimed, asked, { limitMs, signal: by?.signal }).catch(async (error: unknown) => {
    await credits.reservations.releaseRun(runId);
    throw error;
  });
  parts.onRan(ran);
  const { accountId, keyId, triggerId, id: requestId } = claimed;
  const costCents = await settleRan(credits, runId, ran, { accountId, keyId, requestId, triggerId, startedAt });
  const { error, usage, receipt, response } = ran;
  const detail = error && messageOf(error);
  return {
    outcome: error?.code ?? "succeeded",
    ...(detail === undefined ? {} : { detail }),
    durationMs: thousandths(usage.durationMs),
    costCents,
    receipt,
    response,
  };
}

async function begin(
  { firings, onBegun, nowMs }: FireParts,
  claimed: Claimed,
  asked: RequestedRun,
  { limitMs, signal }: { readonly limitMs: number } & Pick<ByHand, "signal">,
): Promise<ExecutorAnswer<"run">> {
  if (!(await firings.begin(claimed))) throw new Lost();
  onBegun(Math.max(0, nowMs() - claimed.dueAt.getTime()) / 1_000);
  const ran = asked.start(limitMs);
  const leave = (): void => asked.leave();
  if (signal?.aborted === true) leave();
  signal?.addEventListener("abort", leave, { once: true });
  return ran;
}

const spenderOf = ({ accountId, keyId, isAccountKey, capCents }: KeyState) => ({
  accountId,
  ...(isAccountKey ? {} : { keyId }),
  ...(capCents === 0n ? {} : { capCents: Number(capCents) }),
});

/** A refusal ends the firing; what may pass by itself is tried again, as long as nothing ran. */
async function endOf(
  parts: FireParts,
  claimed: Claimed,
  asked: RequestedRun,
  error: unknown,
): Promise<Fired | undefined> {
  if (error instanceof Lost) {
    parts.firings.lose(claimed);
    return undefined;
  }
  if (asked.mayHaveRun)
    return { outcome: "interrupted", detail: "The executor failed during the run; nothing was charged." };
  const { code, detail } =
    error instanceof KeywrightError ? error : new KeywrightError("internal_error", "The service failed.");
  const leftMs = latestOf(claimed, code) - parts.nowMs();
  if (isPassing(code, error) && claimed.kind !== "manual" && leftMs > 0) {
    await parts.firings.retry(claimed, Math.min(leftMs, pauseOf(claimed, error, parts.nowMs())));
    return undefined;
  }
  const outcome = code === "trigger_not_due" ? "missed" : code;
  // Of a refusal to a known key.
  const receipt = error instanceof KeywrightError ? error.facts["receipt"] : undefined;
  return {
    outcome,
    detail,
    ...(typeof receipt === "string" ? { receipt } : {}),
    ...(code === "already_ran" ? {} : ({ isRefused: true } as const)),
  };
}

const isPassing = (code: ErrorCode, error: unknown): boolean =>
  code === "log_not_found" ||
  code === "internal_error" ||
  (code === "trigger_not_due" && (error as KeywrightError).detail.endsWith("is yet to come.")) ||
  (error instanceof KeywrightError && error.retryable);

/** For schedules the keyholder says when it is too late. */
function latestOf({ dueAt }: Claimed, code: ErrorCode): number {
  return dueAt.getTime() + (code === "log_not_found" ? LOG_WAIT_MS : TRIGGER_LIMITS.waitHours * HOUR_MS);
}

/** As the refusal asks for, and never shorter than it would be without. */
function pauseOf({ attempt, dueAt }: Claimed, error: unknown, nowMs: number): number {
  const askedMs = error instanceof KeywrightError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
  const youngMs = Math.min(YOUNG_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 10));
  const agedMs = Math.min(MAX_PAUSE_MS, (nowMs - dueAt.getTime()) * PAUSE_OF_AGE);
  return Math.max(askedMs, youngMs, agedMs);
}
