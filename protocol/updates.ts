/**
 * Contract writes of updates, shared by both modes: the relayer has them signed by an API payer, the SDK by the owner.
 * An update replaces the given fields, leaves the rest unchanged and never creates anything.
 */
import type { SimpleWrite, WriteArgument } from "./executor";
import type { Hash32, KeyId } from "./ids";

type U64 = bigint | number | string;

export interface NameAndDescription {
  readonly name: string;
  readonly description: string;
}

export interface UsageKeyFields extends NameAndDescription {
  readonly can_create_groups: boolean;
  readonly can_delete_groups: boolean;
  readonly can_create_pkps: boolean;
  readonly manage_ipfs_ids_in_groups: readonly U64[];
  readonly add_pkp_to_groups: readonly U64[];
  readonly remove_pkp_from_groups: readonly U64[];
  readonly execute_in_groups: readonly U64[];
  /** Unix seconds; 0 = never. */
  readonly expiration?: U64 | undefined;
  /** Cents; 0 = no cap. */
  readonly balance?: U64 | undefined;
}

/** The scopes of a key that runs actions, and does nothing else. */
export const RUNS_ONLY = {
  can_create_groups: false,
  can_delete_groups: false,
  can_create_pkps: false,
  manage_ipfs_ids_in_groups: [],
  add_pkp_to_groups: [],
  remove_pkp_from_groups: [],
};

/** The description that the key of a trigger is attached with: by it an owner tells it from keys of programs. */
export const TRIGGER_DESCRIPTION = "trigger";

/** Expiry and spending cap of a key; 0 means none. */
export interface UsageKeyTerms {
  readonly expiration: U64;
  readonly balance: U64;
}

export const NEVER_AND_NO_CAP: UsageKeyTerms = { expiration: 0n, balance: 0n };

/** Sets a key; omitted terms default to `otherwise`. */
export function usageKeySet(
  account: Hash32,
  key: KeyId,
  fields: UsageKeyFields,
  otherwise: UsageKeyTerms,
): SimpleWrite {
  const { name, description, expiration = otherwise.expiration, balance = otherwise.balance } = fields;
  const flags = [fields.can_create_groups, fields.can_delete_groups, fields.can_create_pkps];
  const { manage_ipfs_ids_in_groups, add_pkp_to_groups, remove_pkp_from_groups, execute_in_groups } = fields;
  const lists = [manage_ipfs_ids_in_groups, add_pkp_to_groups, remove_pkp_from_groups, execute_in_groups].map((list) =>
    list.map(String),
  );
  return call(
    "setUsageApiKey",
    account,
    key,
    String(expiration),
    String(balance),
    name,
    description,
    ...flags,
    ...lists,
  );
}

/**
 * Replaces all permissions of a key. The first call reverts for a key that is not set, so the second never creates one.
 */
export function usageKeyUpdate(
  account: Hash32,
  key: KeyId,
  fields: UsageKeyFields,
  present: UsageKeyTerms,
): SimpleWrite[] {
  return [
    call("updateUsageApiKeyMetadata", account, key, fields.name, fields.description),
    usageKeySet(account, key, fields, present),
  ];
}

/** Present and wanted members of one of a group's lists. If both lists are given, `present` may be incomplete. */
export interface Members {
  readonly present: readonly string[];
  readonly wanted: readonly string[];
}

export interface GroupLists {
  readonly actions?: Members | undefined;
  readonly pkps?: Members | undefined;
}

/** Sets name and description. With both lists: the contract's own replacement. With one: only its differences. */
export function groupUpdate(
  account: Hash32,
  group: U64,
  { name, description }: NameAndDescription,
  { actions, pkps }: GroupLists,
): SimpleWrite[] {
  const id = String(group);
  if (actions !== undefined && pkps !== undefined)
    return [call("updateGroup", account, id, name, description, [...actions.wanted], [...pkps.wanted])];
  const metadata = call("updateGroupMetadata", account, id, name, description);
  if (actions === undefined && pkps === undefined) return [metadata];
  return [metadata, call("changeGroupMembers", account, id, ...difference(actions), ...difference(pkps))];
}

/** Members to add and to remove. */
function difference({ present, wanted }: Members = { present: [], wanted: [] }): [add: string[], remove: string[]] {
  const [have, want] = [new Set(present), new Set(wanted)];
  return [[...want].filter((one) => !have.has(one)), [...have].filter((one) => !want.has(one))];
}

const call = (functionName: string, ...args: WriteArgument[]): SimpleWrite => ({ functionName, args });
