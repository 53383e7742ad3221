/** Groups with their members, read from the chain: many groups per call, since the contract lists members of one. */
import { ZERO_ADDRESS, ZERO_HASH, hash32FromUint, type AccountId } from "../protocol/ids";
import type { AccountManager } from "../typechain-types/contracts/AccountManager";
import type { AskContract } from "./contract";
import { toAddress } from "./fields";
import type { Page } from "./operations";
import type { Item, Query } from "./wire";

type Group = Item<"listGroups">;

/** Members that one call reads: a node limits the gas of a call. */
const MEMBERS_PER_CALL = 300;
const CALLS_AT_ONCE = 100;
const MEMBERS_SHOWN = 100;
const MOST = 1_000n;

export const isPlain = ({ pkp_id, hashed_cid, search = "", members = "false" }: Query<"listGroups"> = {}): boolean =>
  pkp_id === undefined && hashed_cid === undefined && search === "" && members === "false";

/** The page of those of the account's groups that a query with filters asks for. */
export async function groupsFound(
  accountId: AccountId,
  ask: AskContract,
  groups: readonly Group[],
  query: Query<"listGroups">,
): Promise<Page<Group>> {
  const { pkp_id, hashed_cid, search = "", page_number = 0, page_size = 50, members = "false" } = query;
  // The contract lists members by their address.
  const pkp = pkp_id === undefined ? undefined : toAddress(pkp_id, "pkp_id");
  const words = search.trim().toLowerCase();
  const named = groups.filter((group) =>
    `${group.name}\n${group.description}\n${group.id}`.toLowerCase().includes(words),
  );
  const asksMembers = pkp_id !== undefined || hashed_cid !== undefined || members === "true";
  const read = asksMembers ? await withMembers(accountId, ask, named) : named;
  const found = read.filter(
    ({ pkp_ids_permitted: pkps = [], cid_hashes_permitted: actions = [] }) =>
      lists(pkps, pkp, ZERO_ADDRESS) && lists(actions, hashed_cid, ZERO_HASH),
  );
  const start = Number(page_number) * Number(page_size);
  const items = found.slice(start, start + Number(page_size)).map((group) => shown(group, members === "true"));
  return { items, total: found.length };
}

const lists = (members: readonly string[], wanted: string | undefined, any: string): boolean =>
  wanted === undefined || members.some((one) => one === any || one.toLowerCase() === wanted.toLowerCase());

function shown(
  { pkp_ids_permitted: pkps = [], cid_hashes_permitted: actions = [], ...group }: Group,
  all: boolean,
): Group {
  if (!all) return group;
  return {
    ...group,
    pkp_ids_permitted: pkps.slice(0, MEMBERS_SHOWN),
    cid_hashes_permitted: actions.slice(0, MEMBERS_SHOWN),
  };
}

async function withMembers(id: AccountId, ask: AskContract, groups: readonly Group[]): Promise<Group[]> {
  const parts: Group[][] = [];
  let size = Infinity;
  for (const group of groups) {
    const members = group.pkp_count + group.action_count;
    const last = parts.at(-1);
    if (last === undefined || size + members > MEMBERS_PER_CALL || last.length === CALLS_AT_ONCE) {
      parts.push([group]);
      size = members;
    } else {
      last.push(group);
      size += members;
    }
  }
  return (await Promise.all(parts.map((part) => membersOf(id, ask, part)))).flat();
}

function membersOf(id: AccountId, ask: AskContract, groups: readonly Group[]): Promise<Group[]> {
  return ask(async (contract) => {
    const { interface: abi } = contract;
    const calls = groups.flatMap(({ id: group }) =>
      LISTS.map((name) => abi.encodeFunctionData(name as "listPkpsInGroup", [id, group, 0n, MOST])),
    );
    const answers = await contract.multicall.staticCall(calls);
    const decoded = (at: number): Found =>
      abi.decodeFunctionResult(LISTS[at % 2] as never, answers[at] ?? "0x") as never;
    return groups.map((group, at) => ({
      ...group,
      pkp_ids_permitted: [...decoded(2 * at)[0]].map(({ pkpId = "" }) => pkpId),
      cid_hashes_permitted: [...decoded(2 * at + 1)[0]].map(({ actionHash = 0n }) => hash32FromUint(actionHash)),
    }));
  });
}

const LISTS = ["listPkpsInGroup", "listActionsInGroup"] as const satisfies readonly (keyof AccountManager)[];
type Found = readonly [Iterable<{ readonly pkpId?: string; readonly actionHash?: bigint }>];
