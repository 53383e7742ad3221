import { expect } from "chai";
import { ALICE_ID, ALICE_PKP, BOB_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { walletOf } from "../support/world";
import { describeFunction } from "../support/tree";
import { must } from "../../support/must";

describeFunction("addPkpToGroup", {
  "the account's own, in several groups: listed in each": async ({ world, ends }) => {
    await world.do(world.cast.payer, "addGroup", ALICE_ID, "", "", [], []);
    await ends("payer", "addPkpToGroup", [ALICE_ID, 2n, ALICE_PKP], "ok");
    for (const groupId of [1, 2]) expect((await world.manager.getGroup(ALICE_ID, groupId)).pkpCount).to.equal(1n);
  },
  "any PKP, by the owner: listed first": async ({ world, ends }) => {
    await ends("payer", "addPkpToGroup", [ALICE_ID, 1n, ANY_PKP], "ok");
    expect(must((await world.manager.listPkpsInGroup(ALICE_ID, 1, 0, 1)).items[0]).pkpId).to.equal(ANY_PKP);
  },
  "listed already: no effect": ({ ends }) => ends("payer", "addPkpToGroup", [ALICE_ID, 1n, ALICE_PKP], "silent"),
  "another account's or unregistered: UnknownPkp": async ({ ends }) => {
    for (const pkp of [BOB_PKP, walletOf("none")])
      await ends("payer", "addPkpToGroup", [ALICE_ID, 1n, pkp], "UnknownPkp");
  },
  "group 0: GroupZero; no such group: UnknownGroup": async ({ ends }) => {
    await ends("payer", "addPkpToGroup", [ALICE_ID, 0n, ALICE_PKP], "GroupZero");
    await ends("payer", "addPkpToGroup", [ALICE_ID, 2n, ALICE_PKP], "UnknownGroup");
  },
});
