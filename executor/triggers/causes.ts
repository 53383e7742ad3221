/** Why a trigger fires, checked with what the keyholder itself knows: its clock, the chain, what it has sealed. */
import { z } from "zod";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, KeyId } from "../../protocol/ids";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { isDueTime, nextDue } from "../../protocol/schedule";
import {
  causeKeyOf,
  mayBegin,
  type Cause,
  type Definition,
  type EventSettings,
  type Missed,
} from "../../protocol/trigger";
import type { Caller, Callers } from "../access/callers";
import type { EventLogs } from "../chain/eventLogs";
import { unseal } from "./seal";
import type { Keyring } from "../keys/keyring";

export interface CauseParts {
  readonly keyring: Keyring;
  readonly logs: Pick<EventLogs, "logAt" | "requireChain">;
  readonly callers: Pick<Callers, "resolve">;
  readonly chainId: bigint;
  readonly nowMs: () => number;
  /** When this process began: of what fired before it knows nothing. */
  readonly startedAtMs: number;
}

/** A cause that holds. */
export interface Checked {
  /** Names it: it may fire the trigger once. */
  readonly causeKey: string;
  /** When it came to be, in ms since 1970: a due time, a block's time, the acceptance of a request. */
  readonly atMs: number;
  /** What the action is told of it, in its param `trigger`. */
  readonly given: object;
  /** Further params. */
  readonly body: object;
  /** Who fires it by hand: the run may do no more than a run of this caller's. */
  readonly by?: Pick<Caller, "ids">;
}

interface Question<C extends Cause["type"]> {
  readonly account: AccountId;
  readonly definition: Definition;
  /** The trigger's key, which is derived from all of its definition. */
  readonly keyId: KeyId;
  readonly cause: Extract<Cause, { type: C }>;
}

/** A chain's sequencer may set its blocks' time ahead by an hour. */
const MAX_AHEAD_MS = 2 * 3_600_000;
const WAIT_MS = TRIGGER_LIMITS.waitHours * 3_600_000;

const notDue = (detail: string): KeywrightError => new KeywrightError("trigger_not_due", detail);
const otherKind = (): KeywrightError => notDue("The trigger is not fired by causes of this kind.");

export function checkCause(parts: CauseParts, question: Question<Cause["type"]>): Promise<Checked> | Checked {
  const { type } = question.cause;
  if (type === "schedule") return scheduled(parts, question as Question<"schedule">);
  if (type === "event") return logged(parts, question as Question<"event">);
  return type === "hook" ? hooked(parts, question as Question<"hook">) : byHand(parts, question as Question<"manual">);
}

/**
 * An earlier process may have fired for a cause from before this one's start; a relayer that asks for it again cannot
 * be told from one whose first attempt failed. `skip` wants none of them, `once` those that an outage may have kept.
 */
function requireUnfired({ startedAtMs, nowMs }: CauseParts, missed: Missed, atMs: number): void {
  if (missed === "once") return;
  // A chain's clock may be ahead: after a restart its time would not be before the start.
  if (atMs > nowMs()) throw notDue(`${new Date(atMs).toISOString()} is yet to come.`);
  if (atMs <= startedAtMs)
    throw notDue("It is from before the start of the keyholder, which cannot know whether it has fired.");
}

/**
 * By the clock of this process, which decisions tie to the chain's. A due time may begin a little early, by the same
 * margin before the start too.
 */
function scheduled(parts: CauseParts, { definition: { settings }, cause }: Question<"schedule">): Checked {
  if (!("schedule" in settings)) throw otherKind();
  const { schedule } = settings;
  const dueMs = cause.dueAtSeconds * 1_000;
  const due = new Date(dueMs).toISOString();
  if (!isDueTime(schedule, dueMs)) throw notDue(`${due} is no due time of the schedule.`);
  const now = parts.nowMs();
  const followingMs = nextDue(schedule, dueMs);
  if (!mayBegin(schedule, { dueMs, followingMs, nowMs: now }))
    throw notDue(now < dueMs ? `${due} is yet to come.` : `${due} is too long ago.`);
  const earlyMs = TRIGGER_LIMITS.earlySeconds * 1_000;
  requireUnfired(parts, schedule.missed, dueMs - earlyMs);
  if (followingMs !== undefined && followingMs <= parts.startedAtMs)
    throw notDue(`${due} is not the last due time before the start of the keyholder.`);
  return { causeKey: causeKeyOf(cause), atMs: dueMs, given: { due_at: due }, body: {} };
}

async function logged(parts: CauseParts, question: Question<"event">): Promise<Checked> {
  const { logs, nowMs } = parts;
  const { definition, cause } = question;
  if (!("event" in definition.settings)) throw otherKind();
  const filter: EventSettings = definition.settings.event;
  const chainId = filter.chain_id ?? Number(parts.chainId);
  const log = await logs.logAt(chainId, filter, cause);
  const atMs = log.blockSeconds * 1_000;
  if (nowMs() > atMs + WAIT_MS) throw notDue("The log was made too long ago.");
  // Causes are forgotten in the order of their times: one from the future would take all until then for fired.
  if (atMs > nowMs() + MAX_AHEAD_MS) throw notDue(`The block of ${new Date(atMs).toISOString()} is yet to come.`);
  requireUnfired(parts, filter.missed ?? "once", atMs);
  const event = {
    chain_id: chainId.toString(),
    address: log.address,
    topics: log.topics,
    data: log.data,
    block_number: cause.blockNumber,
    block_hash: cause.blockHash.toLowerCase(),
    transaction_hash: cause.transactionHash.toLowerCase(),
    log_index: log.logIndex,
  };
  return { causeKey: causeKeyOf(cause), atMs, given: { event }, body: {} };
}

const acceptedSchema = z.strictObject({
  trigger: z.string(),
  key: z.string(),
  atSeconds: z.number(),
  body: z.record(z.string(), z.unknown()),
});

function hooked(parts: CauseParts, { account, definition, keyId, cause }: Question<"hook">): Checked {
  if (!("hook" in definition.settings)) throw otherKind();
  const accepted = acceptedSchema.safeParse(unseal(parts.keyring, "accepted hook", account, cause.accepted));
  if (!accepted.success || accepted.data.trigger !== keyId)
    throw notDue("This is no request that the trigger's hook has accepted.");
  const { key, atSeconds, body } = accepted.data;
  const atMs = Math.round(atSeconds * 1_000);
  if (parts.nowMs() > atMs + WAIT_MS) throw notDue("The hook's request was accepted too long ago.");
  requireUnfired(parts, definition.settings.hook.missed ?? "once", atMs);
  return { causeKey: `hook:${key}`, atMs, given: { received_at: new Date(atMs).toISOString() }, body };
}

/** The contract is asked about the caller together with the trigger's key. */
async function byHand(parts: CauseParts, { cause }: Question<"manual">): Promise<Checked> {
  const by = await parts.callers.resolve(cause.by);
  return { causeKey: causeKeyOf(cause), atMs: parts.nowMs(), given: { manual: true }, body: {}, by };
}
