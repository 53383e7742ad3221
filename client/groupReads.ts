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
const CALLS_AT_ONCE = 200;
const MEMBERS_SHOWN = 100;
/** Of each kind in a group. */
const MOST = 1_000;

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
  const parts: Slice[][] = [];
  let size = Infinity;
  for (const slice of groups.flatMap(slicesOf)) {
    const last = parts.at(-1);
    if (last === undefined || size + slice.limit > MEMBERS_PER_CALL || last.length === CALLS_AT_ONCE) {
      parts.push([slice]);
      size = slice.limit;
    } else {
      last.push(slice);
      size += slice.limit;
    }
  }
  const read = (await Promise.all(parts.map((part) => membersOf(id, ask, part)))).flat();
  const found = new Map(groups.map((group) => [group.id, { pkps: [] as string[], actions: [] as string[] }]));
  for (const { group, list, members } of read) found.get(group)?.[list].push(...members);
  return groups.map((group) => {
    const { pkps, actions } = found.get(group.id) ?? {};
    return { ...group, pkp_ids_permitted: pkps, cid_hashes_permitted: actions };
  });
}

/** So many members of one kind, from this one on. */
interface Slice {
  readonly group: string;
  readonly list: keyof typeof LISTS;
  readonly offset: number;
  readonly limit: number;
}

function slicesOf({ id: group, pkp_count, action_count }: Group): Slice[] {
  return Object.entries({ pkps: pkp_count, actions: action_count }).flatMap(([list, count]) => {
    const shown = Math.min(count, MOST);
    return Array.from({ length: Math.ceil(shown / MEMBERS_PER_CALL) }, (_, at) => {
      const offset = at * MEMBERS_PER_CALL;
      return { group, list: list as Slice["list"], offset, limit: Math.min(MEMBERS_PER_CALL, shown - offset) };
    });
  });
}

function membersOf(
  id: AccountId,
  ask: AskContract,
  slices: readonly Slice[],
): Promise<(Slice & { readonly members: readonly string[] })[]> {
  return ask(async (contract) => {
    const { interface: abi } = contract;
    const calls = slices.map(({ group, list, offset, limit }) =>
      abi.encodeFunctionData(LISTS[list] as "listPkpsInGroup", [id, group, offset, limit]),
    );
    const answers = await contract.multicall.staticCall(calls);
    return slices.map((slice, at) => {
      const [found] = abi.decodeFunctionResult(LISTS[slice.list] as never, answers[at] ?? "0x") as never as Found;
      const members = [...found].map(({ pkpId, actionHash = 0n }) => pkpId ?? hash32FromUint(actionHash));
      return { ...slice, members };
    });
  });
}

const LISTS = { pkps: "listPkpsInGroup", actions: "listActionsInGroup" } as const satisfies Readonly<
  Record<string, keyof AccountManager>
>;
type Found = readonly [Iterable<{ readonly pkpId?: string; readonly actionHash?: bigint }>];
