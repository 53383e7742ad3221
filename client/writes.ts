/**
 * Every write an owner can make, prepared and not sent: the same operations and fields as the HTTP interface in API
 * mode, as calldata for the contract.
 * Source: docs/conformance.md §3, §4.
 */
import type { SimpleWrite } from "../protocol/executor";
import { hash32FromUint, packedAccountId, type AccountId, type Address } from "../protocol/ids";
import { opBits, PKP_OP_NAMES, type PkpOp } from "../protocol/ops";
import { groupUpdate, NEVER_AND_NO_CAP, usageKeySet, usageKeyUpdate, type UsageKeyFields } from "../protocol/updates";
import { type AccountEvents, type AskContract, contractInterface as iface, encodeMulticall } from "./contract";
import type { Body } from "./wire";
import { refuse } from "./errors";
import { actionOfCid, toAccountId, toActionHash, toAddress, toGroupId, toKeyId, toU64 } from "./fields";

type GroupTarget = { readonly id: string | number };

/** One call of the contract by the owner, not yet sent. */
export interface OwnerWrite<Result extends object = object> {
  /** The contract's function; `multicall` for several. */
  readonly functionName: string;
  /** Calldata. */
  readonly data: string;
  /** Reads the write's result from the transaction's events, consuming them. */
  readonly resultOf: (events: AccountEvents) => Result;
}

/** A write's result once it is on chain. */
export type Sent<Result extends object = object> = Result & {
  readonly success: true;
  readonly transaction_hash: string;
  readonly block_number: number;
};

/** A ChainSecured mint's result without the secret, sufficient to attach it. Plain JSON, safe to store. */
export interface MintedWallet {
  readonly wallet_address: string;
  readonly derivation_path: string;
}
export interface MintedUsageKey extends MintedWallet {
  readonly api_key_hash: string;
}

export interface NamedThing {
  readonly name: string;
  readonly description: string;
}

/** The account and owner of the writes, and how to read what they need from the chain. */
export interface OwnerContext {
  readonly accountId: AccountId;
  readonly owner: Address;
  readonly ask: AskContract;
}

export type OwnerWrites = ReturnType<typeof ownerWrites>;

export function ownerWrites(context: OwnerContext) {
  return {
    ...accountWrites(context),
    ...pkpWrites(context),
    ...groupWrites(context),
    ...memberWrites(context),
    ...actionWrites(context),
    ...usageKeyWrites(context),
    batch,
  };
}

/** Encodes calldata; values that cannot be encoded are refused as invalid arguments. */
const encode: typeof iface.encodeFunctionData = (name: string, values?: readonly unknown[]) => {
  try {
    return iface.encodeFunctionData(name as never, values as never);
  } catch {
    return refuse(
      `${name}: a field is missing or of the wrong type; names and descriptions are strings of whole characters.`,
    );
  }
};

const nothing = (): object => ({});

function ownerWrite(data: string): OwnerWrite;
function ownerWrite<Result extends object>(
  data: string,
  resultOf: (events: AccountEvents) => Result,
): OwnerWrite<Result>;
function ownerWrite(data: string, resultOf: (events: AccountEvents) => object = nothing): OwnerWrite {
  return { functionName: iface.getFunction(data.slice(0, 10) as "addGroup")?.name ?? "multicall", data, resultOf };
}

/** Calls that both modes share, as one write. */
function plainWrites(calls: readonly SimpleWrite[]): OwnerWrite {
  const [first, ...rest] = calls.map(({ functionName, args }) =>
    ownerWrite(encode(functionName as never, args as never)),
  );
  if (first === undefined) return refuse("there is nothing to write.");
  return rest.length === 0 ? first : ownerWrite(batch([first, ...rest]).data);
}

/** Page size when reading the members of a group's list to replace it. */
const MEMBERS_AT_ONCE = 200n;

async function everyPage(read: (offset: bigint) => Promise<string[]>): Promise<string[]> {
  const found: string[] = [];
  for (;;) {
    const page = await read(BigInt(found.length));
    found.push(...page);
    if (page.length < Number(MEMBERS_AT_ONCE)) return found;
  }
}

const lowerCase = (address: string): string => address.toLowerCase();

type ResultsOf<Writes extends readonly OwnerWrite[]> = {
  readonly [I in keyof Writes]: Writes[I] extends OwnerWrite<infer Result> ? Result : never;
};

/** Combines writes into one atomic multicall, in order. */
function batch<const Writes extends readonly OwnerWrite[]>(
  writes: Writes,
): OwnerWrite<{ readonly results: ResultsOf<Writes> }> {
  if (writes.length === 0) refuse("a batch needs at least one write.");
  const resultOf = (events: AccountEvents) => ({
    results: writes.map((write) => write.resultOf(events)) as ResultsOf<Writes>,
  });
  return ownerWrite(encodeMulticall(writes.map((write) => write.data)), resultOf);
}

function accountWrites({ accountId, owner }: OwnerContext) {
  return {
    /**
     * Makes the owner's own ChainSecured account. Its id is the packed keccak256 of the sending wallet: a client for
     * another account refuses.
     */
    createAccount: async ({
      account_name,
      account_description,
    }: {
      account_name: string;
      account_description: string;
    }) => {
      const own = packedAccountId(owner);
      if (accountId !== own)
        refuse(
          `this client is for the account ${accountId}; the owner's own would be ${own}: make a client ` +
            "without accountId.",
        );
      const data = encode("newChainSecuredAccount", [account_name, account_description]);
      return ownerWrite(data, () => ({ api_key_hash: own, wallet_address: owner }));
    },

    updateAccount: async ({ name, description }: NamedThing) =>
      ownerWrite(encode("updateAccountMetadata", [accountId, name, description])),

    /** Immediately stops everything but the owner: no key runs and no usage key writes. */
    freezeAccount: async () => ownerWrite(encode("setAccountFrozen", [accountId, true])),
    unfreezeAccount: async () => ownerWrite(encode("setAccountFrozen", [accountId, false])),

    /**
     * Transfers the account to another owner. The sender's rights end with this transaction; usage keys stay, unless
     * `revokeAllUsageApiKeys` precedes it in a `batch`.
     */
    transferOwnership: async ({ new_owner_address }: Body<"transferOwnership">) =>
      ownerWrite(encode("transferOwnership", [accountId, toAddress(new_owner_address, "new_owner_address")])),
  };
}

function pkpWrites({ accountId, ask }: OwnerContext) {
  return {
    /** The second half of creating a PKP: registers the result of `mintPkp` in the account. Idempotent. */
    registerPkp: async (minted: MintedWallet, { name = "", description = "" }: Partial<NamedThing> = {}) => {
      const wallet = toAddress(minted.wallet_address, "wallet_address");
      const data = encode("registerWalletDerivation", [
        accountId,
        wallet,
        toAccountId(minted.derivation_path, "derivation_path"),
        name,
        description,
      ]);
      return ownerWrite(data, () => ({
        wallet_address: wallet,
        pkp_id: wallet,
        derivation_path: minted.derivation_path,
      }));
    },
    updatePkp: async ({ pkp_id, name, description }: NamedThing & { pkp_id: string | number }) =>
      ownerWrite(encode("updatePkpMetadata", [accountId, await pkpAddress(ask, accountId, pkp_id), name, description])),
    /** Replaces the operations denied to every action with this PKP, whatever its groups allow. */
    setWalletOps: async ({ pkp_id, denied_ops }: Body<"setWalletOps">) =>
      ownerWrite(encode("setPkpOps", [accountId, await pkpAddress(ask, accountId, pkp_id), toOpBits(denied_ops)])),
  };
}

const toOpBits = (names: readonly string[]): bigint => {
  const unknown = names.find((name) => !(PKP_OP_NAMES as string[]).includes(name));
  return unknown === undefined
    ? opBits(names as PkpOp[])
    : refuse(`denied_ops: there is no op ${unknown}; there are ${PKP_OP_NAMES.join(", ")}.`);
};

/** Resolves a PKP by its address, or by its number in the account, looked up on chain. */
async function pkpAddress(ask: AskContract, account: AccountId, reference: string | number): Promise<Address> {
  if (typeof reference === "string" && /^0x[0-9a-fA-F]{40}$/.test(reference)) return toAddress(reference, "pkp_id");
  const number = toU64(reference, "pkp_id");
  return number === 0n
    ? refuse("pkp_id: a PKP's number starts at 1; the zero address means any PKP.")
    : ((await ask((contract) => contract.pkpByNumber(account, number))) as Address);
}

function groupWrites({ accountId, ask }: OwnerContext) {
  const pkps = (references: readonly (string | number)[]) =>
    Promise.all(references.map((one) => pkpAddress(ask, accountId, one)));
  const actions = (hashes: readonly string[]) => hashes.map((hash) => toActionHash(hash, "cid_hashes_permitted"));
  const actionsFrom = async (group: bigint, offset: bigint): Promise<string[]> =>
    (await ask((contract) => contract.listActionsInGroup(accountId, group, offset, MEMBERS_AT_ONCE))).items.map(
      ({ actionHash }) => hash32FromUint(actionHash),
    );
  const pkpsFrom = async (group: bigint, offset: bigint): Promise<string[]> =>
    (await ask((contract) => contract.listPkpsInGroup(accountId, group, offset, MEMBERS_AT_ONCE))).items.map(
      ({ pkpId }) => lowerCase(pkpId),
    );
  return {
    addGroup: async ({
      group_name,
      group_description,
      cid_hashes_permitted = [],
      pkp_ids_permitted = [],
    }: Body<"addGroup">) => {
      const data = encode("addGroup", [
        accountId,
        group_name,
        group_description,
        actions(cid_hashes_permitted),
        await pkps(pkp_ids_permitted),
      ]);
      return ownerWrite(data, (events) => ({ group_id: String(events.take("GroupAdded")?.args["groupId"] ?? "") }));
    },

    /** Sets name and description. A given list replaces that list; an omitted one stays unchanged. */
    updateGroup: async ({
      group_id,
      name,
      description,
      cid_hashes_permitted: cids,
      pkp_ids_permitted: ids,
    }: Body<"updateGroup">) => {
      const group = toGroupId(group_id);
      const hasBoth = cids !== undefined && ids !== undefined;
      const present = (member: (offset: bigint) => Promise<string[]>) => (hasBoth ? [] : everyPage(member));
      return plainWrites(
        groupUpdate(
          accountId,
          group,
          { name, description },
          {
            actions: cids && { wanted: actions(cids), present: await present((offset) => actionsFrom(group, offset)) },
            pkps: ids && {
              wanted: (await pkps(ids)).map(lowerCase),
              present: await present((offset) => pkpsFrom(group, offset)),
            },
          },
        ),
      );
    },

    removeGroup: async ({ group_id }: Body<"removeGroup">) =>
      ownerWrite(encode("removeGroup", [accountId, toGroupId(group_id)])),
  };
}

function memberWrites({ accountId, ask }: OwnerContext) {
  const pkp = (reference: string | number) => pkpAddress(ask, accountId, reference);
  const pkps = (references: readonly (string | number)[] = []) => Promise.all(references.map(pkp));
  return {
    addActionToGroup: async ({ group_id, action_ipfs_cid }: Body<"addActionToGroup">) =>
      ownerWrite(encode("addActionToGroup", [accountId, toGroupId(group_id), actionOfCid(action_ipfs_cid)])),

    removeActionFromGroup: async ({ group_id, hashed_cid }: Body<"removeActionFromGroup">) =>
      ownerWrite(
        encode("removeActionFromGroup", [accountId, toGroupId(group_id), toActionHash(hashed_cid, "hashed_cid")]),
      ),

    addPkpToGroup: async ({ group_id, pkp_id }: Body<"addPkpToGroup">) =>
      ownerWrite(encode("addPkpToGroup", [accountId, toGroupId(group_id), await pkp(pkp_id)])),

    removePkpFromGroup: async ({ group_id, pkp_id }: Body<"removePkpFromGroup">) =>
      ownerWrite(encode("removePkpFromGroup", [accountId, toGroupId(group_id), await pkp(pkp_id)])),

    changeGroupActions: async ({ id, add = [], remove = [] }: GroupTarget & Body<"changeGroupActions">) =>
      ownerWrite(
        encode("changeGroupMembers", [accountId, toGroupId(id), add.map(actionOfCid), remove.map(actionOfCid), [], []]),
      ),

    changeGroupPkps: async ({ id, add, remove }: GroupTarget & Body<"changeGroupPkps">) =>
      ownerWrite(encode("changeGroupMembers", [accountId, toGroupId(id), [], [], await pkps(add), await pkps(remove)])),
  };
}

function actionWrites({ accountId }: OwnerContext) {
  return {
    addAction: async ({ action_ipfs_cid, name, description }: Body<"addAction">) =>
      ownerWrite(encode("addAction", [accountId, name, description, actionOfCid(action_ipfs_cid)])),

    deleteAction: async ({ hashed_cid }: Body<"deleteAction">) =>
      ownerWrite(encode("removeAction", [accountId, toActionHash(hashed_cid, "hashed_cid")])),

    updateActionMetadata: async ({ hashed_cid, name, description }: Body<"updateActionMetadata">) =>
      ownerWrite(
        encode("updateActionMetadata", [accountId, toActionHash(hashed_cid, "hashed_cid"), 0, name, description]),
      ),
  };
}

export type UsageKeyPermissions = Body<"addUsageApiKey">;

function usageKeyWrites({ accountId, ask }: OwnerContext) {
  return {
    /**
     * The second half of creating a usage key: one atomic multicall that registers its wallet and sets the key.
     * Idempotent. Does not need the secret.
     */
    attachUsageKey: async (minted: MintedUsageKey, permissions: UsageKeyPermissions) => {
      const path = toAccountId(minted.derivation_path, "derivation_path");
      const wallet = toAddress(minted.wallet_address, "wallet_address");
      const keyId = toKeyId(minted.api_key_hash);
      const register = encode("registerWalletDerivation", [
        accountId,
        wallet,
        path,
        permissions.name,
        permissions.description,
      ]);
      const write = batch([
        ownerWrite(register),
        plainWrites([usageKeySet(accountId, keyId, checked(permissions), NEVER_AND_NO_CAP)]),
      ]);
      return { ...write, resultOf: () => ({ wallet_address: wallet, api_key_hash: keyId }) };
    },

    /**
     * Replaces everything the key may do; an omitted `expiration` or `balance` stays unchanged. Never creates a key.
     */
    updateUsageApiKey: async ({ usage_api_key, ...permissions }: Body<"updateUsageApiKey">) => {
      const keyId = toKeyId(usage_api_key);
      const present = await ask((contract) => contract.getUsageApiKey(keyId));
      return plainWrites(usageKeyUpdate(accountId, keyId, checked(permissions), present));
    },

    updateUsageApiKeyMetadata: async ({ usage_api_key, name, description }: Body<"updateUsageApiKeyMetadata">) =>
      ownerWrite(encode("updateUsageApiKeyMetadata", [accountId, toKeyId(usage_api_key), name, description])),

    /** Revokes every usage key of the account immediately and permanently, at a constant cost. */
    revokeAllUsageApiKeys: async () => ownerWrite(encode("revokeAllUsageApiKeys", [accountId])),

    /** Revokes the key immediately and permanently. */
    removeUsageApiKey: async ({ usage_api_key }: Body<"removeUsageApiKey">) =>
      ownerWrite(encode("removeUsageApiKey", [accountId, toKeyId(usage_api_key)])),
  };
}

/** Validates every number of the permissions, so that errors name the field. */
function checked(permissions: UsageKeyPermissions): UsageKeyFields {
  const {
    expiration,
    balance,
    manage_ipfs_ids_in_groups,
    add_pkp_to_groups,
    remove_pkp_from_groups,
    execute_in_groups,
  } = permissions;
  const groups = (list: readonly (string | number)[], field: string) => list.map((id) => toU64(id, field));
  return {
    ...permissions,
    expiration: expiration === undefined ? undefined : toU64(expiration, "expiration"),
    balance: balance === undefined ? undefined : toU64(balance, "balance"),
    manage_ipfs_ids_in_groups: groups(manage_ipfs_ids_in_groups, "manage_ipfs_ids_in_groups"),
    add_pkp_to_groups: groups(add_pkp_to_groups, "add_pkp_to_groups"),
    remove_pkp_from_groups: groups(remove_pkp_from_groups, "remove_pkp_from_groups"),
    execute_in_groups: groups(execute_in_groups, "execute_in_groups"),
  };
}
