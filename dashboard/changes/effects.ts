/** What calls change, as permissions before and after, in sentences. */
import type { DecodedCall } from "../../client";
import { opNames, PKP_OP_NAMES } from "../../protocol/ops";
import type { Group, Pkp, UsageKey } from "../app/queries";
import { listed, plural, quoted } from "../components/text";
import { hashText, isKeyPath } from "../screens/activity/eventText";
import type { Names } from "../screens/activity/names";
import { scopeSentences, type GroupNames } from "./scopes";

/** What the account is before the calls, as far as it has been read. */
export interface Before {
  readonly names: Names;
  readonly groupNames: GroupNames;
  readonly groups: readonly Group[];
  readonly keys: readonly UsageKey[];
  readonly pkps: readonly Pkp[];
  /** Whether all keys were read: one that is not among them is none. */
  readonly areKeysComplete: boolean;
  readonly keyCount: number;
  readonly frozen: boolean;
  readonly owner: string;
}

export interface Effect {
  /** What is changed: “Payout bot”. */
  readonly about: string;
  readonly before: string;
  readonly after: string;
}

type Args = Readonly<Record<string, string>>;
type Tell = (args: Args, before: Before) => readonly Effect[];

export const effectsOf = (calls: readonly DecodedCall[], before: Before): readonly Effect[] =>
  calls.flatMap(({ functionName, args }) =>
    (TELL[functionName] ?? none)(Object.fromEntries(args.map(({ name, value }) => [name, value])), before),
  );

const none: Tell = () => [];
const effect = (about: string, before: string, after: string): readonly Effect[] => [{ about, before, after }];
const list = (json = "[]"): readonly string[] => JSON.parse(json) as string[];
const groupOf = (id = "", { groups }: Before): Group | undefined => groups.find((group) => group.id === id);
const groupName = (id = "", { names }: Before): string => `the group ${quoted(names.group(id), id)}`;
const actionName = (value = "0", { names }: Before): string => {
  const name = names.action(hashText(value));
  return name === "any code" ? name : quoted(name, value);
};
const pkpName = (address = "", { names }: Before): string => {
  const name = names.pkp(address);
  return name === "any PKP" ? name : quoted(name, address);
};
const keyOf = (value = "0", { keys }: Before): UsageKey | undefined => keys.find(({ id }) => id === hashText(value));
/** Of what is not read yet, or could not be. */
const UNREAD = "Not known here.";
function mayNow(key: UsageKey | undefined, { groupNames, areKeysComplete }: Before): string {
  if (key === undefined) return areKeysComplete ? "No such key." : UNREAD;
  return scopeSentences(key as never, groupNames).join(" ");
}
const countsOf = (group: Group | undefined): string =>
  group === undefined ? UNREAD : `${plural(group.action_count, "action")} may use ${plural(group.pkp_count, "PKP")}.`;

const setKey: Tell = (args, before) => {
  const scopes = {
    can_create_groups: args["createGroups"] === "true",
    can_delete_groups: args["deleteGroups"] === "true",
    can_create_pkps: args["createPKPs"] === "true",
    manage_ipfs_ids_in_groups: list(args["manageIPFSIdsInGroups"]),
    add_pkp_to_groups: list(args["addPkpToGroups"]),
    remove_pkp_from_groups: list(args["removePkpFromGroups"]),
    execute_in_groups: list(args["executeInGroups"]),
    expiration: args["expiration"] ?? "0",
    balance: args["balance"] ?? "0",
  };
  const after = scopeSentences(scopes as never, before.groupNames).join(" ");
  const key = keyOf(args["usageApiKeyHash"], before);
  return effect(`The key ${quoted(args["name"] ?? "", "without a name")}`, mayNow(key, before), after);
};

type Members = Partial<Record<"addActions" | "removeActions" | "addPkps" | "removePkps", readonly string[]>>;

/** Members that come and go: each changes what code may use which PKPs. */
function membersChanged(groupId: string | undefined, change: Members, before: Before): readonly Effect[] {
  const { addActions = [], removeActions = [], addPkps = [], removePkps = [] } = change;
  const said = [
    ...sentence(addActions, "may use its PKPs", (value) => actionName(value, before)),
    ...sentence(removeActions, "may no longer use its PKPs", (value) => actionName(value, before)),
    ...sentence(addPkps, "may be used by its actions", (value) => pkpName(value, before)),
    ...sentence(removePkps, "may no longer be used by its actions", (value) => pkpName(value, before)),
  ];
  // No sum: other calls may change the same group, and what is added may be in it.
  return effect(capital(groupName(groupId, before)), countsOf(groupOf(groupId, before)), said.join(" "));
}

const sentence = (members: readonly string[], may: string, nameOf: (value: string) => string): string[] =>
  members.length === 0 ? [] : [`${capital(listed(members.map(nameOf)))} ${may}.`];
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const renamed =
  (what: (args: Args, before: Before) => string): Tell =>
  (args, before) =>
    effect(what(args, before), "", `Its name is ${quoted(args["name"] ?? "", "empty")}.`);

const TELL: Readonly<Record<string, Tell>> = {
  setUsageApiKey: setKey,
  removeUsageApiKey: (args, before) => {
    const key = keyOf(args["usageApiKeyHash"], before);
    const about = `The key ${quoted(key?.name ?? "", "without a name")}`;
    return effect(about, mayNow(key, before), "Revoked: every request with it is refused.");
  },
  revokeAllUsageApiKeys: (_, { keyCount }) => {
    const now = `There ${keyCount === 1 ? "is" : "are"} ${plural(keyCount, "key")}.`;
    return effect("Usage keys", now, "All revoked: none may be used.");
  },
  addGroup: ({ name = "", cidHashes, pkpIds }, before) => {
    const code = listed(list(cidHashes).map((one) => actionName(one, before))) || "No action";
    const keys = listed(list(pkpIds).map((one) => pkpName(one, before))) || "no PKP";
    const uses = `${code} may use ${keys}`;
    return effect(`The group ${quoted(name, "without a name")}`, "No such group.", `${capital(uses)}.`);
  },
  removeGroup: ({ groupId }, before) => {
    const now = countsOf(groupOf(groupId, before));
    return effect(capital(groupName(groupId, before)), now, "Removed: it permits nothing.");
  },
  addActionToGroup: ({ groupId, action = "0" }, before) => membersChanged(groupId, { addActions: [action] }, before),
  removeActionFromGroup: ({ groupId, action = "0" }, before) =>
    membersChanged(groupId, { removeActions: [action] }, before),
  addPkpToGroup: ({ groupId, pkpId = "" }, before) => membersChanged(groupId, { addPkps: [pkpId] }, before),
  removePkpFromGroup: ({ groupId, pkpId = "" }, before) => membersChanged(groupId, { removePkps: [pkpId] }, before),
  changeGroupMembers: ({ groupId, addActions, removeActions, addPkps, removePkps }, before) =>
    membersChanged(
      groupId,
      {
        ...{ addActions: list(addActions), removeActions: list(removeActions) },
        ...{ addPkps: list(addPkps), removePkps: list(removePkps) },
      },
      before,
    ),
  removeAction: ({ actionHash }, before) =>
    effect(
      `The action ${actionName(actionHash, before)}`,
      "May use the PKPs of every group that lists it.",
      "In no group: it may use no PKP.",
    ),
  addAction: ({ name = "" }) =>
    effect(
      `The action ${quoted(name, "without a name")}`,
      "",
      "Named in the account. It may use nothing until a group lists it.",
    ),
  // What a usage key may do is told by the call that sets it.
  registerWalletDerivation: ({ name = "", derivationPath }) =>
    isKeyPath(derivationPath)
      ? []
      : effect(
          `The PKP ${quoted(name, "without a name")}`,
          "No such PKP.",
          "In the account. Nothing may use it until a group lists it.",
        ),
  setPkpOps: ({ pkp = "", deniedOps = "0" }, before) => {
    const told = before.pkps.find(({ wallet_address }) => wallet_address.toLowerCase() === pkp.toLowerCase());
    const allowed = (denied: readonly string[]): string =>
      `Allows ${listed(PKP_OP_NAMES.filter((op) => !denied.includes(op))) || "nothing"}.`;
    const now = told === undefined ? UNREAD : allowed(told.denied_ops ?? []);
    return effect(`The PKP ${pkpName(pkp, before)}`, now, allowed(opNames(BigInt(deniedOps))));
  },
  setAccountFrozen: ({ frozen }, { frozen: isFrozen }) => {
    const say = (is: boolean): string =>
      is ? "Frozen: no key can run or change anything." : "Keys may do what they are permitted.";
    return effect("The account", say(isFrozen), say(frozen === "true"));
  },
  transferOwnership: ({ newOwner = "" }, { owner }) =>
    effect("The account", `Belongs to ${owner}.`, `Belongs to ${newOwner}, who alone may change it.`),
  updateAccountMetadata: renamed(() => "The account"),
  updateGroupMetadata: renamed(({ groupId }, before) => capital(groupName(groupId, before))),
  updateActionMetadata: renamed(({ actionHash }, before) => `The action ${actionName(actionHash, before)}`),
  updatePkpMetadata: renamed(({ pkpId }, before) => `The PKP ${pkpName(pkpId, before)}`),
  updateUsageApiKeyMetadata: renamed(
    ({ usageApiKeyHash }, before) => `The key ${quoted(keyOf(usageApiKeyHash, before)?.name ?? "", "without a name")}`,
  ),
};
