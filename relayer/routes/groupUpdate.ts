/** `update_group` as one transaction, for any combination of lists. */
import type { ContractWrite, SimpleWrite } from "../../protocol/executor";
import type { AccountId, GroupId } from "../../protocol/ids";
import { WIRE_LIMITS } from "../../protocol/limits";
import { groupUpdate as updateCalls, type Members } from "../../protocol/updates";
import type { Chain } from "../chain/types";
import type { Call } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { writeWithPkps } from "./references";

export async function groupUpdate({ chain }: RouteDeps, { caller, body }: Call<"updateGroup">): Promise<ContractWrite> {
  const { accountId, actorId } = caller;
  const { group_id: groupId, pkp_ids_permitted: pkps, cid_hashes_permitted: actions } = body;
  const hasBoth = actions !== undefined && pkps !== undefined;
  const listed = async (wanted: readonly string[], read: typeof actionsOf): Promise<Members> => ({
    wanted,
    present: hasBoth ? [] : await read(chain, accountId, groupId),
  });
  const wantedActions = actions && (await listed(actions, actionsOf));
  if (pkps === undefined) return oneWrite(updateCalls(actorId, groupId, body, { actions: wantedActions }));
  const { present } = await listed([], pkpsOf);
  return writeWithPkps(chain, caller, pkps, (wanted) =>
    oneWrite(updateCalls(actorId, groupId, body, { actions: wantedActions, pkps: { wanted, present } })),
  );
}

/** Combines several calls into one multicall. */
export function oneWrite(calls: SimpleWrite[]): ContractWrite {
  const [only] = calls;
  return only !== undefined && calls.length === 1 ? only : { functionName: "multicall", calls };
}

const actionsOf = (chain: Chain, accountId: AccountId, groupId: GroupId): Promise<string[]> =>
  everyPage(async (offset) =>
    (await chain.actionsInGroup(accountId, groupId, { offset, limit: WIRE_LIMITS.pageSizeMax })).items.map(
      ({ hash }) => hash,
    ),
  );

const pkpsOf = (chain: Chain, accountId: AccountId, groupId: GroupId): Promise<string[]> =>
  everyPage(async (offset) =>
    (await chain.pkpsInGroup(accountId, groupId, { offset, limit: WIRE_LIMITS.pageSizeMax })).items.map(
      (pkp) => pkp.walletAddress,
    ),
  );

async function everyPage(read: (offset: number) => Promise<string[]>): Promise<string[]> {
  const found: string[] = [];
  for (;;) {
    const page = await read(found.length);
    found.push(...page);
    if (page.length < WIRE_LIMITS.pageSizeMax) return found;
  }
}
