/** Usage key routes: create, update, revoke, list. */
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite } from "../../protocol/executor";
import type { AccountId, KeyId } from "../../protocol/ids";
import { NEVER_AND_NO_CAP, usageKeySet, usageKeyUpdate as updateCalls } from "../../protocol/updates";
import type { usageKeyRoutes as routes } from "../../protocol/http/usageKeys";
import type { UsageKeyView } from "../chain/types";
import type { LimitedKey } from "../credits/types";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { foundPage, matcher } from "./found";
import { oneWrite } from "./groupUpdate";
import { pageOf, storePageOf } from "./pages";
import { usageKeyId } from "./references";
import { attemptOf, done, secretOnce, withSecret, write, type Writes } from "./writes";

type Permissions = Call<"addUsageApiKey">["body"];

export function usageKeyRoutes(deps: RouteDeps, writes: Writes): HandlersOf<keyof typeof routes> {
  const { chain } = deps;
  return {
    addUsageApiKey: async (call) => {
      if (call.kept !== undefined) return usageKeyAgain(deps, call);
      for (let attempt = 1; ; attempt++) {
        try {
          return await addUsageApiKey(deps, writes, call, attempt);
        } catch (error) {
          if (attempt === MAX_MINTS || !isTaken(error)) throw error;
        }
      }
    },

    updateUsageApiKey: async (call) => {
      const { accountId } = call.caller;
      const keyId = await usageKeyId(chain, call.body.usage_api_key);
      return done(await writes.send(call, () => usageKeyUpdate(deps, accountId, keyId, call.body)));
    },

    updateUsageApiKeyMetadata: async (call) => {
      const keyId = await usageKeyId(chain, call.body.usage_api_key);
      return done(
        await writes.send(
          call,
          write("updateUsageApiKeyMetadata", call.caller.accountId, keyId, call.body.name, call.body.description),
        ),
      );
    },

    removeUsageApiKey: async (call) => {
      const keyId = await usageKeyId(chain, call.body.usage_api_key);
      return done(await writes.send(call, write("removeUsageApiKey", call.caller.accountId, keyId)));
    },

    revokeAllUsageApiKeys: async (call) =>
      done(await writes.send(call, write("revokeAllUsageApiKeys", call.caller.accountId))),

    listApiKeys: (call) => listApiKeys(deps, call),

    setUsageKeyLimits: async ({ caller: { accountId }, body }) => {
      const { id } = await ownKey(deps, accountId, await usageKeyId(chain, body.usage_api_key));
      await deps.credits.accounts.setKeyLimits(accountId, id, {
        centsPerDay: body.cents_per_day || undefined,
        runsPerMinute: body.runs_per_minute || undefined,
        origins: body.origins,
      });
      return { success: true };
    },

    listUsageKeyLimits: async ({ caller, query, setTotal }) => {
      const page = storePageOf(query);
      const { items, total } = await deps.credits.accounts.limitedKeys(caller.accountId, page);
      setTotal(total);
      return items.map(keyLimits);
    },
  };
}

/** Maximum number of keys minted while another account keeps claiming their ids first. */
const MAX_MINTS = 4;

/** Another account, having seen the new key's id in a pending transaction, claimed it: retry with a new key. */
const isTaken = (error: unknown): boolean => error instanceof KeywrightError && error.code === "key_id_taken";

async function addUsageApiKey(
  { executor }: RouteDeps,
  writes: Writes,
  call: Call<"addUsageApiKey">,
  attempt: number,
): Promise<Answer<"addUsageApiKey">> {
  const minted = await executor.call("mintApiUsageKey", attemptOf(call, attempt), call);
  const keyId = minted.apiKeyHash as KeyId;
  const set = usageKeySet(call.caller.accountId, keyId, call.body, NEVER_AND_NO_CAP);
  const written = await writes.send(call, set, { pendingFacts: { api_key_hash: keyId }, attempt });
  const known = { wallet_address: minted.walletAddress, api_key_hash: written.result.api_key_hash ?? keyId };
  return {
    ...done(written),
    ...secretOnce("usage_api_key", { secret: minted.usageApiKey, hash: keyId }, written),
    ...known,
  };
}

/** The first answer with its secret, which may be that of any attempt. */
async function usageKeyAgain({ executor }: RouteDeps, call: Call<"addUsageApiKey">): Promise<Answer<"addUsageApiKey">> {
  for (let attempt = 1; attempt <= MAX_MINTS; attempt++) {
    const minted = await executor.call("mintApiUsageKey", attemptOf(call, attempt), call);
    const { usageApiKey: secret, apiKeyHash: hash } = minted;
    const answer = withSecret<Answer<"addUsageApiKey">>("usage_api_key", { secret, hash }, call.kept);
    if (answer !== undefined) return answer;
  }
  return call.kept as Answer<"addUsageApiKey">;
}

/** Omitted fields keep the value they have when the account's turn comes. */
async function usageKeyUpdate(
  deps: RouteDeps,
  accountId: AccountId,
  keyId: KeyId,
  body: Permissions,
): Promise<ContractWrite> {
  const { expiresAtSeconds: expiration, capCents: balance } = await ownKey(deps, accountId, keyId);
  return oneWrite(updateCalls(accountId, keyId, body, { expiration, balance }));
}

async function ownKey({ chain }: RouteDeps, accountId: AccountId, keyId: KeyId): Promise<UsageKeyView> {
  const key = await chain.usageKey(keyId);
  if (key?.accountId !== accountId) throw new KeywrightError("unknown_usage_key", "The account has no such usage key.");
  return key;
}

async function listApiKeys({ chain, credits }: RouteDeps, call: Call<"listApiKeys">): Promise<Answer<"listApiKeys">> {
  const { accountId } = call.caller;
  const isFound = matcher(call.query.search, ({ name, description, id }: UsageKeyView) => [name, description, id]);
  const { items, total } = await foundPage((page) => chain.usageKeys(accountId, page), pageOf(call.query), isFound);
  const ids = items.map(({ id }) => id);
  const [spent, used] = await Promise.all([credits.accounts.spentCents(ids), credits.runs.lastUses(accountId, ids)]);
  call.setTotal(total);
  return items.map((key) => usageKeyItem(key, spent.get(key.id) ?? 0, used.get(key.id)));
}

const keyLimits = (key: LimitedKey): Answer<"listUsageKeyLimits">[number] => ({
  api_key_hash: key.keyId,
  cents_per_day: key.centsPerDay ?? 0,
  runs_per_minute: key.runsPerMinute ?? 0,
  origins: [...key.origins],
  cents_used: Math.max(0, key.centsUsed),
  runs_used: key.runsUsed,
});

function usageKeyItem(key: UsageKeyView, spentCents: number, usedAt: Date | undefined): Answer<"listApiKeys">[number] {
  const [manage, add, remove, execute] = [
    key.manageIpfsIdsInGroups,
    key.addPkpToGroups,
    key.removePkpFromGroups,
    key.executeInGroups,
  ].map((list) => list.map(String));
  return {
    id: key.id,
    api_key_hash: key.id,
    name: key.name,
    description: key.description,
    expiration: String(key.expiresAtSeconds),
    balance: String(key.capCents),
    spent_cents: spentCents,
    ...(usedAt === undefined ? {} : { last_used_at: Math.floor(usedAt.getTime() / 1000) }),
    can_create_groups: key.canCreateGroups,
    can_delete_groups: key.canDeleteGroups,
    can_create_pkps: key.canCreatePkps,
    manage_ipfs_ids_in_groups: manage ?? [],
    add_pkp_to_groups: add ?? [],
    remove_pkp_from_groups: remove ?? [],
    execute_in_groups: execute ?? [],
    can_manage_ipfs_ids_in_groups: manage ?? [],
    can_add_pkp_to_groups: add ?? [],
    can_remove_pkp_from_groups: remove ?? [],
    can_execute_in_groups: execute ?? [],
  };
}
