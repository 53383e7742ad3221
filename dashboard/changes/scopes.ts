/** A usage key's permissions in plain sentences. */
import type { UsageKeyPermissions } from "../../client";
import { day, dollars, listed } from "../components/text";

export type GroupNames = ReadonlyMap<string, string>;

/** The four lists of groups, in display order. */
export const SCOPE_LISTS = [
  ["execute_in_groups", "run actions"],
  ["manage_ipfs_ids_in_groups", "add and remove actions"],
  ["add_pkp_to_groups", "add PKPs"],
  ["remove_pkp_from_groups", "remove PKPs"],
] as const;
export type ScopeList = (typeof SCOPE_LISTS)[number][0];

/** Permissions to create or delete in the account, independent of groups. */
export const SCOPE_FLAGS = [
  ["can_create_pkps", "create PKPs"],
  ["can_create_groups", "create groups"],
  ["can_delete_groups", "delete groups"],
] as const;

type Scopes = Pick<UsageKeyPermissions, ScopeList | (typeof SCOPE_FLAGS)[number][0] | "expiration" | "balance">;

export function scopeSentences(scopes: Scopes, groups: GroupNames): string[] {
  const perGroup = SCOPE_LISTS.flatMap(([list, what]) =>
    scopes[list].length === 0 ? [] : [`${capital(what)} ${inGroups(scopes[list], groups)}.`],
  );
  const flags = SCOPE_FLAGS.filter(([flag]) => scopes[flag]).map(([, what]) => what);
  const all = [...perGroup, ...(flags.length === 0 ? [] : [`${capital(listed(flags))}.`])];
  const able = all.length === 0 ? ["Nothing but look at the account and its credit."] : all;
  return [...able, ...reachSentence(scopes), ...termsSentence(scopes)];
}

/** Whoever brings a PKP into a group whose actions it runs has the use of every PKP. */
function reachSentence({ add_pkp_to_groups: adds, execute_in_groups: runs }: Scopes): string[] {
  const [added, run] = [adds.map(String), runs.map(String)];
  const isInAll = added.includes("0") || run.includes("0");
  const isBoth = isInAll ? added.length > 0 && run.length > 0 : added.some((id) => run.includes(id));
  return isBoth ? ["So it can use every PKP of the account with the actions of those groups."] : [];
}

function termsSentence({ expiration = 0, balance = 0 }: Pick<Scopes, "expiration" | "balance">): string[] {
  const until = Number(expiration) === 0 ? [] : [`Until ${day(Number(expiration) * 1000)}.`];
  const cap = Number(balance) === 0 ? [] : [`Spends at most ${dollars(Number(balance))} over its life.`];
  return [...until, ...cap];
}

function inGroups(ids: readonly (string | number)[], groups: GroupNames): string {
  if (ids.some((id) => String(id) === "0")) return "in every group, later ones included";
  return `in ${listed(ids.map((id) => `“${groups.get(String(id)) ?? `group ${id}`}”`))}`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
