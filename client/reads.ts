/**
 * Reads an account from the chain, in the shapes of the HTTP lists: a ChainSecured owner needs no key and need not
 * trust the service. Absent, since not on chain: what a key has spent, and the CID behind an action's hash.
 */
import { hash32FromUint, ZERO_ADDRESS, type AccountId } from "../protocol/ids";
import { DENIALS } from "../protocol/denials";
import { opNames } from "../protocol/ops";
import type { ContractRunner } from "ethers";
import type { AccountManager } from "../typechain-types/contracts/AccountManager";
import { AccountManager__factory } from "../typechain-types/factories/contracts/AccountManager__factory";
import type { AskContract } from "./contract";
import { groupsFound, isPlain } from "./groupReads";
import { toActionHash, toAddress, toGroupId, toKeyId } from "./fields";
import type { Page } from "./operations";
import type { OwnerProvider } from "./ownerSigner";
import { walletErrorOf } from "./wallet";
import type { Answer, Item, Query } from "./wire";

type PageQuery = Pick<Query<"listGroups">, "page_number" | "page_size">;
type ListedUsageKey = Omit<
  Item<"listApiKeys">,
  | "spent_cents"
  | "last_used_at"
  | `can_${"manage_ipfs_ids_in" | "add_pkp_to" | "remove_pkp_from" | "execute_in"}_groups`
>;
type ListedAction = Omit<Item<"listActions">, "action_ipfs_cid">;

export interface OwnerReads {
  account(): Promise<Answer<"account">>;
  listGroups(query?: Query<"listGroups">): Promise<Page<Item<"listGroups">>>;
  listActions(query?: Query<"listActions">): Promise<Page<ListedAction>>;
  listWallets(query?: PageQuery): Promise<Page<Item<"listWallets">>>;
  listWalletsInGroup(query: Query<"listWalletsInGroup">): Promise<Page<Item<"listWallets">>>;
  /** At most 200 items per page. */
  listApiKeys(query?: PageQuery): Promise<Page<ListedUsageKey>>;
  /** The contract's decision about a run, with its reason. */
  explainExecution(query: {
    api_key_hash: string;
    hashed_cid: string;
    pkp_id?: string;
  }): Promise<Pick<Answer<"explainExecution">, "allowed" | "reason">>;
  /** Whether this key may run this action, with this PKP if one is given. `usage_api_key` is the key or its hash. */
  mayRun(question: { usage_api_key: string; hashed_cid: string; pkp_id?: string }): Promise<boolean>;
}

export function contractReader(contractAddress: string, provider: OwnerProvider): AskContract {
  const contract = AccountManager__factory.connect(contractAddress, provider as unknown as ContractRunner);
  return (question) =>
    question(contract).catch((cause: unknown) => {
      throw walletErrorOf(cause);
    });
}

export function ownerReads(accountId: AccountId, ask: AskContract): OwnerReads {
  return {
    account: async () => accountOf(await ask((contract) => contract.getAccount(accountId))),
    listGroups: async (query) =>
      isPlain(query)
        ? groupPage(accountId, ask, query)
        : groupsFound(accountId, ask, await everyGroup(accountId, ask), query ?? {}),
    listActions: async (query = {}) => {
      const { group_id: group } = query;
      const page = await ask((contract) =>
        group === undefined
          ? contract.listActions(accountId, ...range(query))
          : contract.listActionsInGroup(accountId, toGroupId(group), ...range(query)),
      );
      return pageOf(page, actionItem);
    },
    listWallets: async (query) =>
      pageOf(await ask((contract) => contract.listPkps(accountId, ...range(query))), walletItem),
    listWalletsInGroup: async (query) =>
      pageOf(
        await ask((contract) => contract.listPkpsInGroup(accountId, toGroupId(query.group_id), ...range(query))),
        walletItem,
      ),
    listApiKeys: async (query) =>
      pageOf(await ask((contract) => contract.listUsageApiKeys(accountId, ...range(query))), usageKeyItem),
    explainExecution: async ({ api_key_hash, hashed_cid, pkp_id }) => {
      const question = [
        toKeyId(api_key_hash),
        toActionHash(hashed_cid, "hashed_cid"),
        pkp_id === undefined ? ZERO_ADDRESS : toAddress(pkp_id, "pkp_id"),
      ] as const;
      const { allowed, reason } = await ask((contract) => contract.explainExecution(...question));
      return { allowed, reason: DENIALS[Number(reason)] ?? "none" };
    },
    mayRun: async ({ usage_api_key, hashed_cid, pkp_id }) => {
      const key = toKeyId(usage_api_key);
      const action = toActionHash(hashed_cid, "hashed_cid");
      if (pkp_id === undefined) return ask((contract) => contract.canExecuteAction(key, action));
      const pkp = toAddress(pkp_id, "pkp_id");
      return ask((contract) => contract.canUseWalletInAction(key, action, pkp));
    },
  };
}

const PAGE_SIZE = 50;
const LARGE_PAGE = 200;

const groupPage = async (id: AccountId, ask: AskContract, query: PageQuery = {}): Promise<Page<Item<"listGroups">>> =>
  pageOf(await ask((contract) => contract.listGroups(id, ...range(query))), groupItem);

async function everyGroup(id: AccountId, ask: AskContract): Promise<Item<"listGroups">[]> {
  const all: Item<"listGroups">[] = [];
  for (let page = 0; ; page += 1) {
    const { items, total } = await groupPage(id, ask, { page_number: page, page_size: LARGE_PAGE });
    all.push(...items);
    if (items.length === 0 || all.length >= total) return all;
  }
}

function range({ page_number = 0, page_size = PAGE_SIZE }: PageQuery = {}): [offset: bigint, limit: bigint] {
  return [BigInt(page_number) * BigInt(page_size), BigInt(page_size)];
}

function pageOf<From, One>(
  [items, total]: { 0: readonly From[]; 1: bigint } & Iterable<unknown>,
  item: (found: From) => One,
): Page<One> {
  return { items: (items as readonly From[]).map(item), total: Number(total) };
}

const ids = (list: readonly bigint[]): string[] => list.map(String);

type Found<List extends "listGroups" | "listActions" | "listPkps" | "listUsageApiKeys"> = Awaited<
  ReturnType<AccountManager[List]>
>["items"][number];

function accountOf(found: Awaited<ReturnType<AccountManager["getAccount"]>>): Answer<"account"> {
  return {
    id: hash32FromUint(found.id),
    name: found.name,
    description: found.description,
    managed: found.managed,
    owner: found.adminWalletAddress,
    frozen: found.frozen,
    group_count: Number(found.groupCount),
    wallet_count: Number(found.pkpCount),
    action_count: Number(found.actionCount),
    usage_api_key_count: Number(found.usageApiKeyCount),
  };
}

function groupItem({ id, name, description, pkpCount, actionCount }: Found<"listGroups">): Item<"listGroups"> {
  return { id: String(id), name, description, pkp_count: Number(pkpCount), action_count: Number(actionCount) };
}

function actionItem({ actionHash, name, description }: Found<"listActions">): ListedAction {
  const hash = hash32FromUint(actionHash);
  return { id: hash, hashed_cid: hash, name: actionHash === 0n ? "Any" : name, description };
}

function walletItem({
  number,
  pkpId,
  derivationPath,
  name,
  description,
  deniedOps,
}: Found<"listPkps">): Item<"listWallets"> {
  const shown = pkpId === ZERO_ADDRESS ? "Any" : name;
  const registered = { derivation_path: hash32FromUint(derivationPath), denied_ops: opNames(deniedOps) };
  return { id: String(number), wallet_address: pkpId, pkp_id: pkpId, name: shown, description, ...registered };
}

function usageKeyItem(found: Found<"listUsageApiKeys">): ListedUsageKey {
  const hash = hash32FromUint(found.id);
  return {
    id: hash,
    api_key_hash: hash,
    name: found.name,
    description: found.description,
    expiration: String(found.expiration),
    balance: String(found.balance),
    can_create_groups: found.createGroups,
    can_delete_groups: found.deleteGroups,
    can_create_pkps: found.createPKPs,
    manage_ipfs_ids_in_groups: ids(found.manageIPFSIdsInGroups),
    add_pkp_to_groups: ids(found.addPkpToGroups),
    remove_pkp_from_groups: ids(found.removePkpFromGroups),
    execute_in_groups: ids(found.executeInGroups),
  };
}
