import { ALICE_ID, ALICE_KEY, ALICE_PKP, BOB_PKP, fullKey } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid, pathFor, walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

const args = (addActions: bigint[], removeActions: bigint[], addPkps: string[], removePkps: string[], groupId = 1n) => [
  ALICE_ID,
  groupId,
  addActions,
  removeActions,
  addPkps,
  removePkps,
];
const NEW = walletOf("new");

describeFunction("changeGroupMembers", {
  "all four lists at once: one event for each member": async ({ world, ends }) => {
    await world.do(world.cast.payer, "registerWalletDerivation", ALICE_ID, NEW, pathFor(ALICE_ID, "new"), "", "");
    await ends("payer", "changeGroupMembers", args([cid(2), 0n], [cid(1)], [NEW, ANY_PKP], [ALICE_PKP]), "ok");
  },
  "by a usage key: each event names the key": async ({ world, ends }) => {
    await world.do(world.cast.payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, [1n]));
    const changes = [1n, [cid(2)], [cid(1)], [], [ALICE_PKP]];
    await ends("payer", "changeGroupMembers", [ALICE_KEY, ...changes], "ok");
  },
  "present members added, and empty lists: no effect": async ({ ends }) => {
    await ends("payer", "changeGroupMembers", args([cid(1)], [], [ALICE_PKP], []), "silent");
    await ends("payer", "changeGroupMembers", args([], [], [], []), "silent");
  },
  "a member added and removed: MemberInBothLists, listed before or not": async ({ world, ends }) => {
    await world.do(world.cast.payer, "registerWalletDerivation", ALICE_ID, NEW, pathFor(ALICE_ID, "new"), "", "");
    for (const action of [cid(1), cid(2), 0n])
      await ends("payer", "changeGroupMembers", args([action], [action], [], []), "MemberInBothLists");
    for (const pkp of [ALICE_PKP, NEW, ANY_PKP])
      await ends("payer", "changeGroupMembers", args([], [], [pkp], [pkp]), "MemberInBothLists");
  },
  "a missing member, or one removed twice: NotInGroup": async ({ ends }) => {
    await ends("payer", "changeGroupMembers", args([], [cid(2)], [], []), "NotInGroup");
    await ends("payer", "changeGroupMembers", args([], [cid(1), cid(1)], [], []), "NotInGroup");
    await ends("payer", "changeGroupMembers", args([], [], [], [ANY_PKP]), "NotInGroup");
    await ends("payer", "changeGroupMembers", args([cid(2)], [0n], [], []), "NotInGroup");
  },
  "a PKP that is not the account's: UnknownPkp": ({ ends }) =>
    ends("payer", "changeGroupMembers", args([], [], [BOB_PKP], []), "UnknownPkp"),
  "group 0: GroupZero; no such group: UnknownGroup": async ({ ends }) => {
    await ends("payer", "changeGroupMembers", args([cid(1)], [], [], [], 0n), "GroupZero");
    await ends("payer", "changeGroupMembers", args([cid(1)], [], [], [], 2n), "UnknownGroup");
  },
});
