/**
 * Who can use a PKP: every pair of a key and an action for which some group lists the action and the PKP, and in which
 * the key may run.
 */
import type { Action, Group, ListingGroup, UsageKey } from "../../app/queries";

export const ANY_PKP = `0x${"0".repeat(40)}`;
export const ANY_ACTION = `0x${"0".repeat(64)}`;

export interface Use {
  readonly group: Group;
  readonly action: Action;
  readonly who: readonly User[];
}
export interface User {
  readonly id: string;
  readonly name: string;
  /** Undefined for the account key, which may run in every group. */
  readonly key?: UsageKey;
}

export const isLive = ({ expiration }: UsageKey, nowSeconds = Date.now() / 1000): boolean =>
  expiration === "0" || Number(expiration) > nowSeconds;

export const runsIn = (key: UsageKey, groupId: string): boolean =>
  key.execute_in_groups.some((id) => id === "0" || id === groupId);

/** Live keys that may run in this group. */
export function usersOf(groupId: string, keys: readonly UsageKey[], accountKey: User | undefined): User[] {
  const able = keys
    .filter((key) => isLive(key) && runsIn(key, groupId))
    .map((key) => ({ id: key.id, name: key.name || "a key without a name", key }));
  return accountKey === undefined ? able : [accountKey, ...able];
}

/** Every code of these groups, with who may run it there. */
export const usesOf = (
  groups: readonly ListingGroup[],
  actions: ReadonlyMap<string, Action>,
  keys: readonly UsageKey[],
  accountKey: User | undefined,
): Use[] =>
  groups.flatMap((group) => {
    const who = usersOf(group.id, keys, accountKey);
    return group.cid_hashes_permitted.map((hash) => ({
      group,
      action: actions.get(hash) ?? { id: hash, hashed_cid: hash, name: "", description: "" },
      who,
    }));
  });
