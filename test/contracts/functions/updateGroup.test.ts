import { expect } from "chai";
import { ALICE_ID, ALICE_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid, walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("updateGroup", {
  "the same strings and members: no effect": ({ ends }) =>
    ends("payer", "updateGroup", [ALICE_ID, 1n, "group", "", [cid(1), cid(1)], [ALICE_PKP]], "silent"),
  "other members: exactly these, an event for each added or removed one": async ({ world, ends }) => {
    await ends("payer", "updateGroup", [ALICE_ID, 1n, "group", "", [cid(2), 0n], [ANY_PKP]], "ok");
    expect(
      (await world.manager.listActionsInGroup(ALICE_ID, 1, 0, 9)).items.map((item) => item.actionHash),
    ).to.deep.equal([0n, cid(2)]);
    expect((await world.manager.listPkpsInGroup(ALICE_ID, 1, 0, 9)).items.map((item) => item.pkpId)).to.deep.equal([
      ANY_PKP,
    ]);
  },
  "empty lists: removes every member": async ({ world, ends }) => {
    await world.do(world.cast.payer, "changeGroupMembers", ALICE_ID, 1n, [0n, cid(3)], [], [ANY_PKP], []);
    await ends("payer", "updateGroup", [ALICE_ID, 1n, "group", "", [], []], "ok");
    const group = await world.manager.getGroup(ALICE_ID, 1);
    expect([group.actionCount, group.pkpCount]).to.deep.equal([0n, 0n]);
  },
  "members removed from the account meanwhile are neither counted nor removed twice": async ({ world, ends }) => {
    await world.do(world.cast.payer, "removeAction", ALICE_ID, cid(1));
    await ends("payer", "updateGroup", [ALICE_ID, 1n, "group", "", [], [ALICE_PKP]], "silent");
  },
  "a PKP that is not the account's: UnknownPkp": ({ ends }) =>
    ends("payer", "updateGroup", [ALICE_ID, 1n, "", "", [], [walletOf("none")]], "UnknownPkp"),
  "group 0: GroupZero": ({ ends }) => ends("payer", "updateGroup", [ALICE_ID, 0n, "", "", [], []], "GroupZero"),
  "no such group: UnknownGroup": ({ ends }) =>
    ends("payer", "updateGroup", [ALICE_ID, 2n, "", "", [], []], "UnknownGroup"),
});
