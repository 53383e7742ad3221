/** Names for the hashes, ids and addresses in runs and events. */
import { useMemo } from "react";
import { actionHashOf, type Cid } from "../../../protocol/ids";
import { useActions, useGroups, usePkps, useUsageKeys } from "../../app/queries";
import { short } from "../../components/text";
import { useSession } from "../../session/context";
import { ANY_ACTION, ANY_PKP } from "../pkps/uses";

export interface Names {
  /** The keys that runs can be filtered by. */
  readonly keyOptions: readonly (readonly [string, string])[];
  /** The actions that runs can be filtered by, by the hash of their CID. */
  readonly actionOptions: readonly (readonly [string, string])[];
  key(hash: string): string;
  /** By CID, or by its hash. */
  action(id: string): string;
  pkp(address: string): string;
  group(id: string): string;
}

/** `isBrief`: of PKPs and groups, which may be thousands, the names that are loaded already. */
export function useNames(isBrief = false): Names {
  const { account } = useSession();
  const keys = useUsageKeys().items;
  const actions = useActions().items;
  const pkps = usePkps({ enabled: !isBrief }).items;
  const groups = useGroups({ enabled: !isBrief }).items;
  return useMemo(() => {
    const byHash = new Map([
      [account.id, account.managed ? "Account key" : "The owner"],
      ...keys.map(({ id, name }) => [id, name || short(id)] as const),
    ]);
    const byAction = new Map(
      actions.flatMap(({ action_ipfs_cid: cid = "", hashed_cid: hash, name }) => [
        [cid, name] as const,
        [hash, name] as const,
      ]),
    );
    const byAddress = new Map(pkps.map(({ wallet_address, name }) => [wallet_address.toLowerCase(), name]));
    const byId = new Map(groups.map(({ id, name }) => [id, name]));
    return {
      keyOptions: [...byHash],
      actionOptions: actions.map(({ hashed_cid: hash, name }) => [hash, name || short(hash)] as const),
      key: (hash) => byHash.get(hash) ?? short(hash),
      action: (id) =>
        id === ANY_ACTION ? "any code" : byAction.get(id) || byAction.get(actionHashOf(id as Cid)) || short(id),
      pkp: (address) => (address === ANY_PKP ? "any PKP" : byAddress.get(address.toLowerCase()) || short(address)),
      group: (id) => (id === "0" ? "every group" : byId.get(id) || `group ${id}`),
    };
  }, [account, keys, actions, pkps, groups]);
}
