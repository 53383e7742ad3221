import type { UsageKeyPermissions } from "../../../client";
import type { UsageKey } from "../../app/queries";
import { SCOPE_LISTS } from "../../changes/scopes";

export type Scopes = UsageKeyPermissions & { readonly expiration: string; readonly balance: string };

/** What a key may do now, as its form takes it. */
export function scopesOf(key: UsageKey): Scopes {
  const { name, description, can_create_groups, can_delete_groups, can_create_pkps, expiration, balance } = key;
  const lists = Object.fromEntries(SCOPE_LISTS.map(([list]) => [list, [...key[list]]])) as Pick<
    Scopes,
    (typeof SCOPE_LISTS)[number][0]
  >;
  return { name, description, can_create_groups, can_delete_groups, can_create_pkps, ...lists, expiration, balance };
}
