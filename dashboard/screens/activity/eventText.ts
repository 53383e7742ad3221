/** Describes a contract event in words, using the names that its owner gave. */
import type { Answer, DecodedCall } from "../../../client";
import { opNames } from "../../../protocol/ops";
import { day, dollars, listed, short } from "../../components/text";
import type { Names } from "./names";

export type ContractEvent = Answer<"events">["events"][number];

const NAMES: Readonly<Record<string, string>> = {
  WalletDerivationRegistered: "PKP created",
  KeyWalletRegistered: "Usage key's wallet registered",
  UsageApiKeySet: "Usage key set",
  UsageApiKeyScopesSet: "Usage key's groups set",
  UsageApiKeyUpdated: "Usage key renamed",
  UsageApiKeyRemoved: "Usage key revoked",
  AllUsageApiKeysRevoked: "All usage keys revoked",
  AccountConvertedToChainSecured: "Account converted to ChainSecured",
  AccountOwnershipTransferred: "Account handed over",
  AccountFreezeSet: "Account frozen or unfrozen",
};

export const hashText = (value: string): string => `0x${BigInt(value).toString(16).padStart(64, "0")}`;

/** Of the wallet of a usage key, which is recorded and is no PKP. */
export const isKeyPath = (path = "0"): boolean => hashText(path).startsWith("0x02");

/** An event's name; the contract has one for PKPs and for the wallets of usage keys. */
export const eventKind = ({ name, args }: Pick<ContractEvent, "name" | "args">): string =>
  name === "WalletDerivationRegistered" && isKeyPath(String(args["derivationPath"])) ? "KeyWalletRegistered" : name;

/** `PkpAddedToGroup` → `PKP added to group`. */
export const eventName = (name: string): string =>
  NAMES[name] ?? name.replace(/(?<=[a-z])([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`).replace(/^Pkp/, "PKP");

type Show = (value: string, names: Names) => string;
const groups: Show = (ids, names) => listed(ids.split(",").map((id) => names.group(id)));

/** By bit, the lowest first. */
const FLAGS = ["create groups", "delete groups", "create PKPs"];

/** Label and format of each argument; others are shown as they are. */
const ARGUMENTS: Readonly<Record<string, readonly [label: string, show: Show]>> = {
  name: ["name", (text) => text],
  description: ["description", (text) => text],
  groupId: ["group", (id, names) => names.group(id)],
  pkpId: ["PKP", (address, names) => names.pkp(address)],
  action: ["action", (hash, names) => names.action(hash)],
  keyId: ["key", (hash, names) => names.key(hash)],
  managed: ["mode", (managed) => (managed === "true" ? "API mode" : "ChainSecured")],
  frozen: ["frozen", (frozen) => (frozen === "true" ? "yes" : "no")],
  admin: ["owner", short],
  oldAdmin: ["from", short],
  newAdmin: ["to", short],
  oldOwner: ["from", short],
  newOwner: ["to", short],
  expiration: ["expires", (at) => (at === "0" ? "never" : day(Number(at) * 1000))],
  balance: ["cap", (cents) => (cents === "0" ? "none" : dollars(Number(cents)))],
  deniedOps: ["never allowed", (bits) => listed(opNames(BigInt(bits))) || "nothing"],
  flags: ["may", (bits) => listed(FLAGS.filter((_, at) => (Number(bits) >> at) & 1))],
  executeInGroups: ["may run in", groups],
  manageIPFSIdsInGroups: ["may add and remove actions in", groups],
  addPkpToGroups: ["may add PKPs in", groups],
  removePkpFromGroups: ["may remove PKPs in", groups],
};

/** The names of calls' arguments that events name otherwise. */
const CALL_ARGUMENTS: Readonly<Record<string, string>> = {
  pkp: "pkpId",
  actionHash: "action",
  usageApiKeyHash: "keyId",
  newAdminWalletAddress: "newAdmin",
};
const HASHES = new Set([
  "id",
  "apiKeyHash",
  "accountApiKeyHash",
  "usageApiKeyHash",
  "actionHash",
  "action",
  "derivationPath",
]);

/** An argument of a call as people know it: hashes as hex; and the owner's name for what it means, if it has one. */
export function argumentText(
  { name, type, value }: DecodedCall["args"][number],
  names: Names,
): { readonly value: string; readonly meaning?: string } {
  if (type === "bool") return { value: value === "true" ? "yes" : "no" };
  const plain = type.endsWith("[]") ? (JSON.parse(value) as string[]).join(",") : value;
  if (plain === "") return { value: type === "string" ? "(empty)" : "none" };
  const exact = HASHES.has(name) ? hashText(plain) : plain;
  const [, show] = ARGUMENTS[CALL_ARGUMENTS[name] ?? name] ?? [];
  const meaning = type === "string" ? exact : (show?.(exact, names) ?? exact);
  return meaning === exact || meaning === short(exact) ? { value: exact } : { value: exact, meaning };
}

/** Shown elsewhere on the screen, or meaningless to a reader. */
const HIDDEN = new Set(["id", "actor", "derivationPath"]);

/** A name speaks for itself; so does “group 3”, which has none. */
const labelled = (label: string, said: string): string => {
  if (label === "name") return `“${said}”`;
  return said.startsWith(`${label} `) ? said : `${label}: ${said}`;
};

const nameFirst = ([one]: [string, unknown], [other]: [string, unknown]): number =>
  Number(other === "name") - Number(one === "name");

export function eventDetails(event: ContractEvent, names: Names): string {
  const { args } = event;
  const isOfKey = eventKind(event) === "KeyWalletRegistered";
  const told = new Map<string, string>();
  for (const [argument, value] of Object.entries(args).sort(nameFirst)) {
    const text = String(value);
    if (HIDDEN.has(argument) || text === "") continue;
    const [label, show] = ARGUMENTS[argument] ?? [argument, short];
    const said = show(text, names);
    // A new PKP's name is also the name behind its address.
    if (said !== "" && !told.has(said))
      told.set(said, labelled(isOfKey && argument === "pkpId" ? "wallet" : label, said));
  }
  return [...told.values()].join(" · ");
}
