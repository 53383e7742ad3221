/** Why a trigger fires, checked with what the keyholder itself knows: its clock, the chain, what it has sealed. */
import { z } from "zod";
import { KeywrightError } from "../../protocol/errors";
import { actionHashOf, type AccountId, type Cid, type KeyId } from "../../protocol/ids";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { isDueTime, nextDue } from "../../protocol/schedule";
import { causeKeyOf, mayBegin, type Cause, type Definition, type EventSettings } from "../../protocol/trigger";
import type { Callers } from "../access/callers";
import type { Chain } from "../chain/chain";
import { unseal } from "./seal";
import type { Keyring } from "../keys/keyring";

export interface CauseParts {
  readonly keyring: Keyring;
  readonly chain: Pick<Chain, "admit" | "logAt">;
  readonly callers: Pick<Callers, "resolve">;
  readonly chainId: bigint;
  readonly nowMs: () => number;
}

/** A cause that holds. */
export interface Checked {
  /** Names it: it may fire the trigger once. */
  readonly causeKey: string;
  /** What the action is told of it, in its param `trigger`. */
  readonly given: object;
  /** Further params. */
  readonly body: object;
}

interface Question<C extends Cause["type"]> {
  readonly account: AccountId;
  readonly definition: Definition;
  readonly cause: Extract<Cause, { type: C }>;
}

const notDue = (detail: string): KeywrightError => new KeywrightError("trigger_not_due", detail);
const otherKind = (): KeywrightError => notDue("The trigger is not fired by causes of this kind.");

export function checkCause(parts: CauseParts, question: Question<Cause["type"]>): Promise<Checked> | Checked {
  const { type } = question.cause;
  if (type === "schedule") return scheduled(parts, question as Question<"schedule">);
  if (type === "event") return logged(parts, question as Question<"event">);
  return type === "hook" ? hooked(parts, question as Question<"hook">) : byHand(parts, question as Question<"manual">);
}

/** By the clock of this process, which decisions tie to the chain's. */
function scheduled({ nowMs }: CauseParts, { definition: { settings }, cause }: Question<"schedule">): Checked {
  if (!("schedule" in settings)) throw otherKind();
  const { schedule } = settings;
  const dueMs = cause.dueAtSeconds * 1_000;
  const due = new Date(dueMs).toISOString();
  if (!isDueTime(schedule, dueMs)) throw notDue(`${due} is no due time of the schedule.`);
  const now = nowMs();
  if (!mayBegin(schedule, { dueMs, followingMs: nextDue(schedule, dueMs), nowMs: now }))
    throw notDue(now < dueMs ? `${due} is yet to come.` : `${due} is too long ago.`);
  return { causeKey: causeKeyOf(cause), given: { due_at: due }, body: {} };
}

async function logged({ chain, chainId }: CauseParts, question: Question<"event">): Promise<Checked> {
  const { definition, cause } = question;
  if (!("event" in definition.settings)) throw otherKind();
  const filter: EventSettings = definition.settings.event;
  const log = await chain.logAt(filter, cause);
  const event = {
    chain_id: chainId.toString(),
    address: log.address,
    topics: log.topics,
    data: log.data,
    block_number: cause.blockNumber,
    block_hash: cause.blockHash,
    transaction_hash: cause.transactionHash,
    log_index: log.logIndex,
  };
  return { causeKey: causeKeyOf(cause), given: { event }, body: {} };
}

const acceptedSchema = z.strictObject({
  trigger: z.string(),
  key: z.string(),
  atSeconds: z.number(),
  body: z.record(z.string(), z.unknown()),
});

function hooked({ keyring, nowMs }: CauseParts, { account, definition, cause }: Question<"hook">): Checked {
  if (!("hook" in definition.settings)) throw otherKind();
  const accepted = acceptedSchema.safeParse(unseal(keyring, "accepted hook", account, cause.accepted));
  if (!accepted.success || accepted.data.trigger !== definition.id)
    throw notDue("This is no request that the trigger's hook has accepted.");
  const { key, atSeconds, body } = accepted.data;
  if (nowMs() > (atSeconds + TRIGGER_LIMITS.waitHours * 3_600) * 1_000)
    throw notDue("The hook's request was accepted too long ago.");
  return { causeKey: `hook:${key}`, given: { received_at: new Date(atSeconds * 1_000).toISOString() }, body };
}

/** Whoever may run the action with a key of the same account may also fire its trigger. */
async function byHand(parts: CauseParts, { account, definition, cause }: Question<"manual">): Promise<Checked> {
  const { by } = cause;
  const checked = { causeKey: causeKeyOf(cause), given: { manual: true }, body: {} };
  const { ids } = await parts.callers.resolve(by);
  const action = actionHashOf(definition.cid as Cid);
  for (const id of ids as readonly (KeyId | AccountId)[]) {
    const { decision } = await parts.chain.admit(id, action, { notBefore: 0 });
    if (decision.allowed && decision.accountId === account) return checked;
  }
  throw new KeywrightError("not_authorized", "This key may not run the trigger's action in its account.");
}
