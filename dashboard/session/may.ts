/** What this session's credential may change, so that nothing is offered that would be refused. */
import { useMemo } from "react";
import { keyHashOf } from "../../client";
import { useUsageKeys, type UsageKey } from "../app/queries";
import { useSession } from "./context";

export interface May {
  /** Whatever only the owner may change. */
  readonly all: boolean;
  readonly createGroups: boolean;
  readonly deleteGroups: boolean;
  readonly createPkps: boolean;
  /** In some group. */
  readonly run: boolean;
  /** In this group. */
  readonly listActions: (groupId: string) => boolean;
  readonly addPkps: (groupId: string) => boolean;
  readonly removePkps: (groupId: string) => boolean;
}

export function useMay(): May {
  const session = useSession();
  const { items } = useUsageKeys();
  const key = session.kind === "key" ? items.find(({ id }) => id === keyHashOf(session.key)) : undefined;
  return useMemo(
    () => mayOf(session.isOwner, key, session.account.managed),
    [session.isOwner, key, session.account.managed],
  );
}

function mayOf(isOwner: boolean, own: UsageKey | undefined, managed: boolean): May {
  // The owner's wallet alone writes to a ChainSecured account.
  const key = managed ? own : undefined;
  const flag = (name: `can_${"create_groups" | "delete_groups" | "create_pkps"}`): boolean =>
    isOwner || key?.[name] === true;
  const within = (list: "manage_ipfs_ids_in_groups" | "add_pkp_to_groups" | "remove_pkp_from_groups") => {
    const groups = key?.[list].map(String) ?? [];
    return (groupId: string): boolean => isOwner || groups.includes("0") || groups.includes(groupId);
  };
  return {
    all: isOwner,
    createGroups: flag("can_create_groups"),
    deleteGroups: flag("can_delete_groups"),
    createPkps: flag("can_create_pkps"),
    run: isOwner || (own?.execute_in_groups.length ?? 0) > 0,
    listActions: within("manage_ipfs_ids_in_groups"),
    addPkps: within("add_pkp_to_groups"),
    removePkps: within("remove_pkp_from_groups"),
  };
}
