/** Group routes: groups and their members. */
import { actionHashOf, ZERO_ADDRESS, ZERO_HASH, type ActionHash, type PkpId } from "../../protocol/ids";
import type { ContractWrite } from "../../protocol/executor";
import { WIRE_LIMITS } from "../../protocol/limits";
import type { groupRoutes as routes } from "../../protocol/http/groups";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import type { GroupView } from "../chain/types";
import { defined } from "../../protocol/defined";
import { foundPage, matcher } from "./found";
import { groupUpdate } from "./groupUpdate";
import { pageOf } from "./pages";
import { pkpAddress, writeWithPkps } from "./references";
import { done, write, type Writes } from "./writes";

export function groupRoutes(deps: RouteDeps, writes: Writes): HandlersOf<keyof typeof routes> {
  const { cids } = deps;
  return {
    addGroup: (call) => addGroup(deps, writes, call),
    removeGroup: async (call) =>
      done(await writes.send(call, write("removeGroup", call.caller.actorId, String(call.body.group_id)))),
    updateGroup: async (call) => done(await writes.send(call, () => groupUpdate(deps, call))),
    group: (call) => group(deps, call),

    listGroups: (call) => listGroups(deps, call),

    addActionToGroup: async (call) => {
      const { group_id: groupId, action_ipfs_cid: cid } = call.body;
      const written = await writes.send(
        call,
        write("addActionToGroup", call.caller.actorId, String(groupId), actionHashOf(cid)),
      );
      await cids.remember([cid]);
      return done(written);
    },

    removeActionFromGroup: async (call) => {
      const { group_id: groupId, hashed_cid: hash } = call.body;
      return done(await writes.send(call, write("removeActionFromGroup", call.caller.actorId, String(groupId), hash)));
    },

    addPkpToGroup: async (call) => done(await writes.send(call, await pkpWrite(deps, call, "addPkpToGroup"))),
    removePkpFromGroup: async (call) => done(await writes.send(call, await pkpWrite(deps, call, "removePkpFromGroup"))),

    changeGroupActions: (call) => changeActions(deps, writes, call),
    changeGroupPkps: (call) => changePkps(deps, writes, call),
  };
}

async function listGroups({ chain }: RouteDeps, call: Call<"listGroups">): Promise<Answer<"listGroups">> {
  const { accountId } = call.caller;
  const isFound = await groupFilter(chain, call);
  const { items, total } = await foundPage((page) => chain.groups(accountId, page), pageOf(call.query), isFound);
  call.setTotal(total);
  const ids = items.map(({ id }) => String(id));
  const members = call.query.members === "true" ? await chain.membersOf(accountId, ids) : undefined;
  return items.map(({ id, name, description, pkpCount, actionCount }) => {
    const { pkps, actions } = members?.get(String(id)) ?? {};
    const counts = { pkp_count: pkpCount, action_count: actionCount };
    const listed = defined({ pkp_ids_permitted: pkps && [...pkps], cid_hashes_permitted: actions && [...actions] });
    return { id: String(id), name, description, ...counts, ...listed };
  });
}

/** Undefined when every group is wanted. */
async function groupFilter(
  chain: RouteDeps["chain"],
  { caller, query }: Call<"listGroups">,
): Promise<((group: GroupView) => boolean) | undefined> {
  const { pkp_id: pkp, hashed_cid: action, search } = query;
  const matches = matcher(search, ({ name, description, id }: GroupView) => [name, description, String(id)]);
  const pkpId = pkp && (await pkpAddress(chain, caller.accountId, pkp));
  const asked = [pkpId && [pkpId, ZERO_ADDRESS as PkpId], action && [action, ZERO_HASH as ActionHash]];
  const listing = await Promise.all(
    asked.flatMap((members) => (members === undefined ? [] : [chain.groupsListing(caller.accountId, members)])),
  );
  if (matches === undefined && listing.length === 0) return undefined;
  return (group) => listing.every((ids) => ids.has(String(group.id))) && matches?.(group) !== false;
}

async function addGroup({ chain }: RouteDeps, writes: Writes, call: Call<"addGroup">): Promise<Answer<"addGroup">> {
  const {
    group_name: name,
    group_description: description,
    cid_hashes_permitted: actions,
    pkp_ids_permitted: pkps,
  } = call.body;
  const { actorId } = call.caller;
  const add = await writeWithPkps(chain, call.caller, pkps, (pkpIds) =>
    write("addGroup", actorId, name, description, actions, pkpIds),
  );
  const written = await writes.send(call, add);
  return { ...done(written), group_id: written.result.group_id ?? "" };
}

async function changeActions(
  { cids }: RouteDeps,
  writes: Writes,
  call: Call<"changeGroupActions">,
): Promise<Answer<"changeGroupActions">> {
  const { add, remove } = call.body;
  const members = [add.map(actionHashOf), remove.map(actionHashOf), [], []];
  const written = await writes.send(call, changeMembers(call, members));
  await cids.remember(add);
  return done(written);
}

async function changePkps(
  { chain }: RouteDeps,
  writes: Writes,
  call: Call<"changeGroupPkps">,
): Promise<Answer<"changeGroupPkps">> {
  const { add, remove } = call.body;
  const change = await writeWithPkps(chain, call.caller, [...add, ...remove], (pkpIds) =>
    changeMembers(call, [[], [], pkpIds.slice(0, add.length), pkpIds.slice(add.length)]),
  );
  return done(await writes.send(call, change));
}

/** `members` are the actions to add and to remove, then the PKPs to add and to remove. */
const changeMembers = (
  { caller, params }: Call<"changeGroupActions" | "changeGroupPkps">,
  members: string[][],
): ContractWrite => write("changeGroupMembers", caller.actorId, String(params.id), ...members);

function pkpWrite(
  { chain }: RouteDeps,
  { caller, body }: Call<"addPkpToGroup" | "removePkpFromGroup">,
  functionName: string,
): Promise<ContractWrite> {
  return writeWithPkps(chain, caller, [body.pkp_id], ([pkpId]) =>
    write(functionName, caller.actorId, String(body.group_id), pkpId ?? ""),
  );
}

async function group({ chain }: RouteDeps, { caller, params }: Call<"group">): Promise<Answer<"group">> {
  const first = { offset: 0, limit: WIRE_LIMITS.pageSizeMax };
  const [found, pkps, actions] = await Promise.all([
    chain.group(caller.accountId, params.id),
    chain.pkpsInGroup(caller.accountId, params.id, first),
    chain.actionsInGroup(caller.accountId, params.id, first),
  ]);
  return {
    id: String(found.id),
    name: found.name,
    description: found.description,
    pkp_ids_permitted: pkps.items.map(({ walletAddress }) => walletAddress),
    cid_hashes_permitted: actions.items.map(({ hash }) => hash),
    pkp_count: found.pkpCount,
    action_count: found.actionCount,
  };
}
