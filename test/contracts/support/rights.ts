// The rights that each function of the contract requires, one row for each way to call it.
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { ANY_PKP } from "./state";
import { cid, number, pathFor, walletOf } from "./world";

/** The account of this test. Group 1 is in every key's lists, 2 in none, 3 in the lists but removed. */
export interface Things {
  id: bigint;
  pkp: string;
  otherPkp: string;
  key: bigint;
}

export interface Ask {
  actor: bigint; // the id argument
  group: bigint;
  things: Things;
}

export const SCOPES = [
  "createGroups",
  "deleteGroups",
  "createPkps",
  "manageActions",
  "addPkp",
  "removePkp",
  "execute",
] as const;
export type Scope = (typeof SCOPES)[number];
export type Rule = "owner" | { scopes: Scope[]; wildcard?: Scope[] };

export interface Row {
  fn: string;
  how?: string;
  rule: Rule;
  grouped?: boolean;
  args: (ask: Ask) => unknown[];
}

const needs = (...scopes: Scope[]): Rule => ({ scopes });

export const ROWS: Row[] = [
  { fn: "convertToChainSecuredAccount", rule: "owner", args: ({ actor }) => [actor, walletOf("new owner")] },
  { fn: "transferOwnership", rule: "owner", args: ({ actor }) => [actor, walletOf("new owner")] },
  { fn: "updateAccountMetadata", rule: "owner", args: ({ actor }) => [actor, "n", "d"] },
  {
    fn: "setUsageApiKey",
    how: "new",
    rule: "owner",
    args: ({ actor }) => [actor, number("fresh"), 0, 0, "", "", true, true, true, [0], [0], [0], [0]],
  },
  {
    fn: "setUsageApiKey",
    how: "itself",
    rule: "owner",
    args: ({ actor, things }) => [actor, things.key, 0, 0, "", "", true, true, true, [0], [0], [0], [0]],
  },
  { fn: "setAccountFrozen", rule: "owner", args: ({ actor }) => [actor, true] },
  { fn: "revokeAllUsageApiKeys", rule: "owner", args: ({ actor }) => [actor] },
  { fn: "setPkpOps", rule: "owner", args: ({ actor, things }) => [actor, things.pkp, 1] },
  { fn: "updateUsageApiKeyMetadata", rule: "owner", args: ({ actor, things }) => [actor, things.key, "n", "d"] },
  { fn: "removeUsageApiKey", rule: "owner", args: ({ actor, things }) => [actor, things.key] },
  {
    fn: "registerWalletDerivation",
    rule: needs("createPkps"),
    args: ({ actor, things }) => [actor, walletOf("fresh"), pathFor(things.id, "fresh"), "", ""],
  },
  { fn: "updatePkpMetadata", rule: "owner", args: ({ actor, things }) => [actor, things.pkp, "n", "d"] },
  { fn: "addGroup", how: "empty", rule: needs("createGroups"), args: ({ actor }) => [actor, "", "", [], []] },
  {
    fn: "addGroup",
    how: "with an action",
    rule: { scopes: ["createGroups"], wildcard: ["manageActions"] },
    args: ({ actor }) => [actor, "", "", [cid(1)], []],
  },
  {
    fn: "addGroup",
    how: "with a PKP",
    rule: { scopes: ["createGroups"], wildcard: ["addPkp"] },
    args: ({ actor, things }) => [actor, "", "", [], [things.pkp]],
  },
  { fn: "addGroup", how: "with any action", rule: "owner", args: ({ actor }) => [actor, "", "", [cid(1), 0n], []] },
  {
    fn: "addGroup",
    how: "with any PKP",
    rule: "owner",
    args: ({ actor, things }) => [actor, "", "", [], [things.pkp, ANY_PKP]],
  },
  {
    fn: "updateGroup",
    rule: "owner",
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, "", "", [cid(1)], [things.pkp]],
  },
  { fn: "updateGroupMetadata", rule: "owner", grouped: true, args: ({ actor, group }) => [actor, group, "n", "d"] },
  { fn: "removeGroup", rule: needs("deleteGroups"), grouped: true, args: ({ actor, group }) => [actor, group] },
  {
    fn: "changeGroupMembers",
    how: "nothing",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, [], [], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "add an action",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, [cid(5)], [], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "remove an action",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, [], [cid(1)], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "add a PKP",
    rule: needs("addPkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, [], [], [things.otherPkp], []],
  },
  {
    fn: "changeGroupMembers",
    how: "remove a PKP",
    rule: needs("removePkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, [], [], [], [things.pkp]],
  },
  {
    fn: "changeGroupMembers",
    how: "swap PKPs",
    rule: needs("addPkp", "removePkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, [], [], [things.otherPkp], [things.pkp]],
  },
  {
    fn: "changeGroupMembers",
    how: "any action",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, [0n], [], [], []],
  },
  {
    fn: "changeGroupMembers",
    how: "any PKP",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, [], [], [ANY_PKP], []],
  },
  {
    fn: "addActionToGroup",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, cid(5)],
  },
  { fn: "addActionToGroup", how: "any", rule: "owner", grouped: true, args: ({ actor, group }) => [actor, group, 0n] },
  {
    fn: "removeActionFromGroup",
    rule: needs("manageActions"),
    grouped: true,
    args: ({ actor, group }) => [actor, group, cid(1)],
  },
  {
    fn: "addPkpToGroup",
    rule: needs("addPkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, things.otherPkp],
  },
  {
    fn: "addPkpToGroup",
    how: "any",
    rule: "owner",
    grouped: true,
    args: ({ actor, group }) => [actor, group, ANY_PKP],
  },
  {
    fn: "removePkpFromGroup",
    rule: needs("removePkp"),
    grouped: true,
    args: ({ actor, group, things }) => [actor, group, things.pkp],
  },
  { fn: "addAction", rule: "owner", args: ({ actor }) => [actor, "n", "d", cid(1)] },
  { fn: "removeAction", rule: "owner", args: ({ actor }) => [actor, cid(1)] },
  { fn: "updateActionMetadata", rule: "owner", args: ({ actor }) => [actor, cid(1), 0, "n", "d"] },
];

/** Functions with rules of their own, each with the result for every caller. `other` is every caller not named. */
export const OWN_RULES: Record<
  string,
  { args: (caller: HardhatEthersSigner) => unknown[]; ends: Record<string, string> }
> = {
  newAccount: {
    args: () => [number("new"), true, "", "", walletOf("owner")],
    ends: { payer: "ok", other: "NotAuthorized" },
  },
  newChainSecuredAccount: { args: () => ["", ""], ends: { bob: "AccountIdTaken", other: "ok" } },
  multicall: { args: () => [[]], ends: { other: "ok" } },
  tryMulticall: { args: () => [[]], ends: { other: "ok" } },
  proposeAdmin: { args: () => [walletOf("admin")], ends: { admin: "ok", other: "NotAdmin" } },
  cancelAdminProposal: { args: () => [], ends: { admin: "NothingToCancel", other: "NotAdmin" } },
  acceptAdmin: { args: () => [], ends: { other: "NotPendingAdmin" } },
  addApiPayer: { args: () => [walletOf("payer")], ends: { admin: "ok", other: "NotAdmin" } },
  removeApiPayer: { args: () => [walletOf("nobody")], ends: { admin: "UnknownApiPayer", other: "NotAdmin" } },
  setAdminApiPayer: { args: () => [walletOf("payer")], ends: { admin: "ok", other: "NotAdmin" } },
  cancelAdminApiPayer: { args: () => [], ends: { admin: "NothingToCancel", other: "NotAdmin" } },
};
