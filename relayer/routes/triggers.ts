/** Triggers: made, listed, paused, deleted, fired by hand and by hooks. */
import { API_PREFIX } from "../../protocol/http";
import { KeywrightError } from "../../protocol/errors";
import { defined } from "../../protocol/defined";
import type { Cid, KeyId } from "../../protocol/ids";
import { kindOfSettings, type Settings } from "../../protocol/trigger";
import { NEVER_AND_NO_CAP, RUNS_ONLY, TRIGGER_DESCRIPTION, usageKeySet } from "../../protocol/updates";
import type { triggerRoutes as routes } from "../../protocol/http/triggers";
import type { Answer, Call, Caller, HandlersOf } from "../middleware/call";
import { hookHeadersOf } from "../triggers/book";
import type { Fired, FiringView, TriggerView } from "../triggers/types";
import type { RouteDeps } from "./deps";
import { storePageOf } from "./pages";
import { attemptOf, done, withSecret, write, type Writes } from "./writes";

export function triggerRoutes(deps: RouteDeps, writes: Writes): HandlersOf<keyof typeof routes> {
  const { triggers } = deps;
  return {
    createTrigger: (call) => (call.kept === undefined ? createTrigger(deps, writes, call) : createdAgain(deps, call)),
    listTriggers: async ({ caller, query, setTotal }) => {
      const { items, total } = await triggers.book.list(caller.accountId, storePageOf(query));
      setTotal(total);
      return items.map(triggerItem);
    },
    getTrigger: async ({ caller, params }) => triggerItem(await triggers.book.one(params.id, caller.accountId)),
    listFirings: async ({ caller, params, query, setTotal }) => {
      const { id } = await triggers.book.one(params.id, caller.accountId);
      const { items, total } = await triggers.book.firings(id, storePageOf(query), query.until);
      setTotal(total);
      return items.map((firing) => firingItem(firing, caller.isOwner));
    },
    updateTrigger: async ({ caller, params: { id }, body: { name, paused } }) => {
      await triggers.book.one(id, caller.accountId);
      if (name !== undefined) await triggers.book.rename(id, name);
      if (paused === true) await triggers.book.pause(id);
      if (paused === false) await triggers.activate(id, "paused");
      return triggerItem(await triggers.book.one(id, caller.accountId));
    },
    deleteTrigger: (call) => deleteTrigger(deps, writes, call),
    runTrigger: (call) => runTrigger(deps, call),
    callHook: async ({ params, rawBody, header, requestId, operation }) => {
      const request = { body: rawBody, headers: hookHeadersOf(header), requestId, operation };
      const accepted = await triggers.acceptHook(params.id, request);
      const { firingId, isRepeated, fired } = accepted;
      return {
        success: true,
        firing_id: firingId,
        ...(isRepeated ? { repeated: true as const } : {}),
        ...defined({ outcome: fired?.outcome }),
        ...(fired?.response === undefined ? {} : { response: JSON.parse(fired.response) }),
      };
    },
  };
}

/** The service writes for managed accounts, and for identities, whose wallets it signs for. */
const isWrittenHere = ({ credential, isOwner, managed, identityWallet }: Caller): boolean =>
  credential !== undefined && isOwner && (managed || identityWallet !== undefined);

/** The trigger's key, the same for a repeated request. */
async function mint({ executor, cidOf }: RouteDeps, call: Call<"createTrigger">) {
  const { body, caller } = call;
  // In ChainSecured mode the trigger acts only once the owner has attached it: a multisig has a usage key ask for it.
  if (caller.managed && !caller.isOwner)
    throw new KeywrightError("owner_only", "Only the account's owner may make a trigger: it is a key of the account.");
  const settings = settingsOf(body);
  const cid = body.action_ipfs_cid ?? (await cidOf(body.code ?? ""));
  const { accountId } = caller;
  const asked = { ...attemptOf(call), accountId, cid, params: body.params ?? "{}", settings };
  return { settings, cid, minted: await executor.call("mintTrigger", asked, call) };
}

/** The first answer with its hook's secret, which the keyholder derives once more. */
async function createdAgain(deps: RouteDeps, call: Call<"createTrigger">): Promise<Answer<"createTrigger">> {
  const { hookSecret: secret = "", apiKeyHash: hash } = (await mint(deps, call)).minted;
  const kept = call.kept as Answer<"createTrigger">;
  return withSecret<Answer<"createTrigger">>("hook_secret", { secret, hash }, kept) ?? kept;
}

async function createTrigger(
  deps: RouteDeps,
  writes: Writes,
  call: Call<"createTrigger">,
): Promise<Answer<"createTrigger">> {
  const { body, caller } = call;
  const { triggers } = deps;
  const { accountId } = caller;
  const { settings, cid, minted } = await mint(deps, call);
  const { triggerId: id, paramsSha256, sealed, walletAddress, derivationPath, statement, hookSecret } = minted;
  const keyId = minted.apiKeyHash as KeyId;
  // It is stored before anything is paid, if it ever is.
  if (call.operation?.isRepeated !== true) await call.countAsFreeChange();
  await triggers.book.add({
    ...{ id, accountId, keyId, sealed, paramsSha256, cid: cid as Cid, name: body.name, code: body.code },
    kind: kindOfSettings(settings),
    settings: withoutSecret(settings),
    isAttachedByOwner: !isWrittenHere(caller),
    isAskedByKey: !caller.isOwner,
  });
  const transaction = isWrittenHere(caller)
    ? await attach(writes, call, keyId).catch(async (error: unknown) => {
        // What was refused has had no effect; of anything else this is not known.
        if (error instanceof KeywrightError && error.status < 500) await triggers.book.forget(id);
        throw error;
      })
    : undefined;
  // Attached and paid for, so it is told as made. What fails here is made up for once the event of its key is seen.
  if (transaction !== undefined) await triggers.activate(id, "unattached").catch(() => undefined);
  return {
    ...triggerItem(await triggers.book.one(id, accountId)),
    success: true,
    ...{ wallet_address: walletAddress, derivation_path: derivationPath, statement },
    ...defined({ hook_secret: hookSecret, transaction_hash: transaction }),
  };
}

async function attach(writes: Writes, call: Call<"createTrigger">, keyId: KeyId): Promise<string> {
  const { name, execute_in_groups, expiration, balance } = call.body;
  const described = { name, description: TRIGGER_DESCRIPTION };
  const fields = { ...RUNS_ONLY, ...described, execute_in_groups, expiration, balance };
  const set = usageKeySet(call.caller.accountId, keyId, fields, NEVER_AND_NO_CAP);
  return (await writes.send(call, set, { pendingFacts: { api_key_hash: keyId } })).transactionHash;
}

function settingsOf({ schedule, event, hook }: Call<"createTrigger">["body"]): Settings {
  if (schedule !== undefined) return { schedule };
  return event !== undefined ? { event } : { hook: hook ?? { verification: "none", respond: false } };
}

function withoutSecret(settings: Settings): Settings {
  if (!("hook" in settings)) return settings;
  const { secret: _, ...hook } = settings.hook;
  return { hook };
}

async function deleteTrigger(
  { triggers, chain }: RouteDeps,
  writes: Writes,
  call: Call<"deleteTrigger">,
): Promise<Answer<"deleteTrigger">> {
  const { accountId } = call.caller;
  const { id, keyId } = await triggers.book.one(call.params.id, accountId);
  const isAttached = isWrittenHere(call.caller) && (await chain.usageKey(keyId))?.accountId === accountId;
  const revoked = isAttached ? done(await writes.send(call, write("removeUsageApiKey", accountId, keyId))) : undefined;
  await triggers.book.delete(id);
  return { success: true, api_key_hash: keyId, ...revoked };
}

async function runTrigger({ triggers }: RouteDeps, call: Call<"runTrigger">): Promise<Answer<"runTrigger">> {
  const { caller, params, operation } = call;
  const { credential, accountId, keyId, capCents } = caller;
  if (credential === undefined)
    throw new KeywrightError("missing_credential", "A run needs a key or an identity token.");
  const spender = keyId && { accountId, keyId, capCents, origin: call.header("origin") };
  const trigger = await triggers.book.one(params.id, caller.accountId);
  operation?.begins();
  // Whoever can repeat the request learns how this run ended, which therefore is made.
  const signal = operation === undefined ? call.signal : undefined;
  const { id, fired } = await triggers.run(trigger, { credential, spender, signal }, operation?.id);
  const made = await triggers.book.firing(id);
  if (made?.state !== "ended") throw new KeywrightError("timed_out", "The firing did not end in time.");
  operation?.happened();
  // Where that fails the row stays as long as others.
  if (fired?.isRefused === true) await triggers.book.dropFiring(id).catch(() => undefined);
  if (fired?.outcome === "not_authorized")
    throw new KeywrightError("not_authorized", fired.detail ?? "This key may not run the trigger's action.");
  return { ...firingItem(made, true), ...returnedOf(made, fired) };
}

/** A run that an earlier request began has left no response. */
function returnedOf(
  { outcome }: FiringView,
  fired: Fired | undefined,
): Pick<Answer<"runTrigger">, "response" | "response_returned_before"> {
  if (fired === undefined) return outcome === "succeeded" ? { response_returned_before: true } : {};
  return fired.response === undefined ? {} : { response: JSON.parse(fired.response) };
}

function triggerItem(trigger: TriggerView): Answer<"getTrigger"> {
  const { id, name, keyId, cid, paramsSha256, kind, settings, state, reason, failures, lastOutcome } = trigger;
  return {
    ...{ id, name, api_key_hash: keyId, action_ipfs_cid: cid, params_sha256: paramsSha256, kind },
    ...("schedule" in settings ? { schedule: settings.schedule } : {}),
    ...("event" in settings ? { event: settings.event } : {}),
    ...("hook" in settings ? { hook: { ...settings.hook, path: `${API_PREFIX}/hooks/${id}` } } : {}),
    state: state === "deleted" ? "paused" : state,
    ...defined({ reason }),
    failures,
    ...defined({
      next_due_at: trigger.nextDue?.toISOString(),
      last_fired_at: trigger.lastFiredAt?.toISOString(),
      last_outcome: lastOutcome,
    }),
    created_at: trigger.createdAt.toISOString(),
  };
}

/** A run's error may say what its params said: only the owner reads it, and whoever asked for the run. */
function firingItem(firing: FiringView, readsMessage: boolean): Answer<"listFirings">[number] {
  const { id, triggerId, kind, cause, state, outcome, detail, durationMs, costCents, receipt } = firing;
  return {
    ...{ id, trigger_id: triggerId, kind, cause, state, due_at: firing.dueAt.toISOString() },
    ...defined({
      started_at: firing.startedAt?.toISOString(),
      ended_at: firing.endedAt?.toISOString(),
      outcome,
      detail: readsMessage || durationMs === undefined ? detail : undefined,
      duration_ms: durationMs,
      cost_cents: costCents,
      receipt,
    }),
  };
}
