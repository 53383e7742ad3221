/** `update_group` as one transaction, whichever lists were given. Source: wire, row "update group". */
import type { ContractWrite } from "../../protocol/executor";
import type { AccountId, GroupId } from "../../protocol/ids";
import { WIRE_LIMITS } from "../../protocol/limits";
import type { Chain } from "../chain/types";
import type { Call } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { writeWithPkps } from "./references";
import { write } from "./writes";

/** Both lists: the contract's own update. One: the metadata and that list's difference. None: the metadata. */
export async function groupUpdate({ chain }: RouteDeps, { caller, body }: Call<"updateGroup">): Promise<ContractWrite> {
  const { accountId, actorId } = caller;
  const { name, description, group_id: groupId, pkp_ids_permitted: pkps, cid_hashes_permitted: actions } = body;
  const id = String(groupId);
  if (pkps !== undefined && actions !== undefined) {
    return writeWithPkps(chain, accountId, pkps, (pkpIds) => write("updateGroup", actorId, id, name, description, actions, pkpIds));
  }
  const metadata = { functionName: "updateGroupMetadata", args: [actorId, id, name, description] };
  const withChange = (...lists: string[][]): ContractWrite => ({
    functionName: "multicall",
    calls: [metadata, { functionName: "changeGroupMembers", args: [actorId, id, ...lists] }],
  });
  if (actions !== undefined) {
    const { add, remove } = difference(await actionsOf(chain, accountId, groupId), actions);
    return withChange(add, remove, [], []);
  }
  if (pkps === undefined) return metadata;
  const present = await pkpsOf(chain, accountId, groupId);
  return writeWithPkps(chain, accountId, pkps, (pkpIds) => {
    const { add, remove } = difference(present, pkpIds);
    return withChange([], [], add, remove);
  });
}

function difference(present: readonly string[], wanted: readonly string[]): { add: string[]; remove: string[] } {
  const [have, want] = [new Set(present), new Set(wanted)];
  return { add: [...want].filter((one) => !have.has(one)), remove: [...have].filter((one) => !want.has(one)) };
}

const actionsOf = (chain: Chain, accountId: AccountId, groupId: GroupId): Promise<string[]> =>
  everyPage(async (offset) => (await chain.actionsInGroup(accountId, groupId, { offset, limit: WIRE_LIMITS.pageSizeMax })).items.map(({ hash }) => hash));

const pkpsOf = (chain: Chain, accountId: AccountId, groupId: GroupId): Promise<string[]> =>
  everyPage(async (offset) => (await chain.pkpsInGroup(accountId, groupId, { offset, limit: WIRE_LIMITS.pageSizeMax })).items.map((pkp) => pkp.walletAddress));

async function everyPage(read: (offset: number) => Promise<string[]>): Promise<string[]> {
  const found: string[] = [];
  for (;;) {
    const page = await read(found.length);
    found.push(...page);
    if (page.length < WIRE_LIMITS.pageSizeMax) return found;
  }
}
