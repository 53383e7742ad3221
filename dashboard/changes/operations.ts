/** Everything an account's owner can change, each in both modes. The fields are those of the HTTP interface. */
import { WIRE_LIMITS } from "../../protocol/limits";
import type { PkpOp } from "../../protocol/ops";
import type { Body, CallOptions, ChainSecuredClient, Client, OwnerWrite, UsageKeyPermissions } from "../../client";
import { plural, quoted, short } from "../components/text";
import type { Touched } from "../app/queries";
import type { Change, Request } from "./change";
import { scopeSentences, type GroupNames } from "./scopes";

/** Operations that both modes have under one name with the same fields. */
type Shared = keyof ChainSecuredClient["prepare"] & keyof Client;
type Words = Change["words"];

function shared<Name extends Shared>(
  name: Name,
  input: Parameters<Client[Name]>[0],
  title: string,
  words: Words,
): Change {
  return {
    title,
    words,
    touches: TOUCHES[name] ?? ["account"],
    ...byApi(name, input),
    viaChain: ({ prepare }) => (prepare[name] as (input: unknown) => Promise<OwnerWrite>)(input),
  };
}

/** One operation of the service, which also names the attempt. */
export function byApi<Name extends keyof Client, R extends object = Awaited<ReturnType<Client[Name]>>>(
  name: Name,
  input: Parameters<Client[Name]>[0],
): Pick<Change<R>, "request" | "viaApi"> {
  type Operation = (input: unknown, options: CallOptions) => Promise<R>;
  return {
    request: [name, input] as Request,
    viaApi: (client, options) => (client[name] as unknown as Operation)(input, options),
  };
}

const TOUCHES: Partial<Record<Shared, readonly Touched[]>> = {
  updateGroup: ["groups", "members"],
  removeGroup: ["groups", "members", "keys", "account"],
  changeGroupPkps: ["groups", "members"],
  addActionToGroup: ["groups", "members", "actions", "account"],
  removeActionFromGroup: ["groups", "members"],
  removePkpFromGroup: ["groups", "members"],
  addAction: ["actions", "members", "account"],
  updateActionMetadata: ["actions", "memberNames"],
  deleteAction: ["actions", "groups", "members", "account"],
  updateUsageApiKey: ["keys"],
  removeUsageApiKey: ["keys", "account"],
  revokeAllUsageApiKeys: ["keys", "account"],
  setWalletOps: ["pkps"],
};

interface Strings {
  readonly name: string;
  readonly description: string;
}
const strings = ({ name, description }: Strings): Words => [
  ["Name", name],
  ...(description === "" ? [] : [["Description", description] as const]),
];

export function createPkp(fields: Strings): Change {
  return {
    title: `Create the PKP ${quoted(fields.name, "without a name")}`,
    words: strings(fields),
    touches: ["pkps", "account"],
    signedFirst: {
      type: "CreateWallet",
      why:
        "First your wallet signs a request for a new key. That costs nothing, and the key belongs to no account " +
        "until you send the transaction that registers it.",
    },
    ...byApi("createWallet", { ...fields }),
    viaChain: async (owner) => {
      requireShort(fields);
      return owner.prepare.registerPkp(await owner.mintPkp(), fields);
    },
  };
}

export function createGroup(fields: Strings, pkps: readonly string[], actions: readonly string[]): Change {
  const body = {
    group_name: fields.name,
    group_description: fields.description,
    pkp_ids_permitted: [...pkps],
    cid_hashes_permitted: [...actions],
  };
  return {
    title: `Create the group ${quoted(fields.name, "without a name")}`,
    words: [...strings(fields), ["PKPs", names(pkps)], ["Actions", names(actions)]],
    touches: ["groups", "members", "actions", "account"],
    ...byApi("addGroup", body),
    viaChain: ({ prepare }) => prepare.addGroup(body),
  };
}

const names = (ids: readonly string[]): string => (ids.length === 0 ? "none" : ids.map(short).join(", "));

export const renameGroup = (id: string, name: string, fields: Strings): Change =>
  shared("updateGroup", { group_id: id, ...fields }, `Rename the group ${quoted(name, id)}`, strings(fields));

export const removeGroup = (id: string, name: string): Change =>
  shared("removeGroup", { group_id: id }, `Remove the group ${quoted(name, id)}`, [["Group", id]]);

/** One transaction for all PKPs added and removed. */
export const changeGroupPkps = (id: string, name: string, add: readonly string[], remove: readonly string[]): Change =>
  shared("changeGroupPkps", { id, add: [...add], remove: [...remove] }, `Change the PKPs of ${quoted(name, id)}`, [
    ["Add", names(add)],
    ["Remove", names(remove)],
  ]);

export const addActionToGroup = (id: string, name: string, cid: string): Change =>
  shared("addActionToGroup", { group_id: id, action_ipfs_cid: cid }, `List an action in ${quoted(name, id)}`, [
    ["Action", cid],
  ]);

export const removeActionFromGroup = (id: string, name: string, hash: string, action: string): Change =>
  shared("removeActionFromGroup", { group_id: id, hashed_cid: hash }, `Take ${action} out of ${quoted(name, id)}`, [
    ["Action", hash],
  ]);

export const removePkpFromGroup = (id: string, name: string, pkp: string): Change =>
  shared("removePkpFromGroup", { group_id: id, pkp_id: pkp }, `Take a PKP out of ${quoted(name, id)}`, [["PKP", pkp]]);

export const addAction = (cid: string, fields: Strings): Change =>
  shared("addAction", { action_ipfs_cid: cid, ...fields }, `Add the action ${quoted(fields.name, short(cid))}`, [
    ...strings(fields),
    ["Code", cid],
  ]);

export const renameAction = (hash: string, name: string, fields: Strings): Change =>
  shared(
    "updateActionMetadata",
    { hashed_cid: hash, ...fields },
    `Rename the action ${quoted(name, short(hash))}`,
    strings(fields),
  );

export const removeAction = (hash: string, name: string): Change =>
  shared(
    "deleteAction",
    { hashed_cid: hash },
    `Remove the action ${quoted(name, short(hash))} from the account and every group`,
    [["Action", hash]],
  );

interface MadeKey {
  readonly usage_api_key: string;
  readonly api_key_hash: string;
}
export function createUsageKey(permissions: UsageKeyPermissions, groups: GroupNames): Change<MadeKey> {
  return {
    title: `Create the usage key ${quoted(permissions.name, "without a name")}`,
    words: [
      ["Name", permissions.name],
      ["May", scopeSentences(permissions, groups).join(" ")],
    ],
    signedFirst: {
      type: "AddUsageApiKey",
      why:
        "First your wallet signs a request for a new secret, which you store. That costs nothing, and the secret " +
        "opens nothing until you send the transaction that attaches it.",
    },
    secret: { kind: "usage key", label: permissions.name, in: ({ usage_api_key }) => usage_api_key },
    touches: ["keys", "account"],
    ...byApi("addUsageApiKey", permissions),
    viaChain: async (owner, keep) => {
      requireShort(permissions);
      const { usage_api_key, minted } = await owner.mintUsageKey();
      const made = { usage_api_key, api_key_hash: minted.api_key_hash };
      await keep(made);
      return { ...(await owner.prepare.attachUsageKey(minted, permissions)), resultOf: () => made };
    },
  };
}

/** Forms count characters, the contract bytes. Asked before the mint: what it refuses makes a minted key useless. */
function requireShort({ name, description }: Strings): void {
  for (const [what, text, most] of [
    ["name", name, WIRE_LIMITS.nameBytes],
    ["description", description, WIRE_LIMITS.descriptionBytes],
  ] as const)
    if (new TextEncoder().encode(text).length > most)
      throw new Error(`The ${what} is too long: at most ${most} bytes. Letters beyond a to z take two or more each.`);
}

export const updateUsageKey = (hash: string, permissions: Body<"addUsageApiKey">, groups: GroupNames): Change =>
  shared(
    "updateUsageApiKey",
    { usage_api_key: hash, ...permissions },
    `Change what ${quoted(permissions.name, "the key")} may do`,
    [
      ["Name", permissions.name],
      ["May", scopeSentences(permissions, groups).join(" ")],
    ],
  );

export const revokeKey = (hash: string, name: string): Change =>
  shared("removeUsageApiKey", { usage_api_key: hash }, `Revoke the usage key ${quoted(name, short(hash))}`, [
    ["Key", hash],
  ]);

export const transferOwnership = (to: string): Change =>
  shared("transferOwnership", { new_owner_address: to }, "Hand the account to another owner", [["New owner", to]]);

export const renameAccount = (fields: Strings): Change =>
  shared("updateAccount", fields, "Rename the account", strings(fields));

export function renamePkp(address: string, name: string, fields: Strings): Change {
  const body = { pkp_id: address, ...fields };
  return {
    title: `Rename the PKP ${quoted(name, short(address))}`,
    words: strings(fields),
    touches: ["pkps", "memberNames"],
    ...byApi("updateWallet", body),
    viaChain: ({ prepare }) => prepare.updatePkp(body),
  };
}

/** Revokes every key in one write. */
export function revokeAll(keys: readonly { readonly id: string; readonly name: string }[], total: number): Change {
  const others = total > keys.length ? [`${total - keys.length} more`] : [];
  return shared("revokeAllUsageApiKeys", {}, `Revoke ${plural(total, "usage key")}`, [
    ["Keys", [...keys.map(({ name, id }) => name || short(id)), ...others].join(", ")],
  ]);
}

export const freezeAccount = (): Change =>
  shared("freezeAccount", {}, "Freeze the account", [["Stops", "every run, and every change by usage keys"]]);

export const unfreezeAccount = (): Change =>
  shared("unfreezeAccount", {}, "Unfreeze the account", [["Allows again", "what each key may do"]]);

export const setPkpOps = (address: string, name: string, denied: readonly PkpOp[]): Change =>
  shared(
    "setWalletOps",
    { pkp_id: address, denied_ops: [...denied] },
    `Change the allowed operations of ${quoted(name, short(address))}`,
    [["Never allowed", denied.length === 0 ? "nothing" : denied.join(", ")]],
  );
