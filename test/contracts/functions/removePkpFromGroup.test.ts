import { expect } from "chai";
import { ALICE_ID, ALICE_PKP, BOB_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("removePkpFromGroup", {
  "listed: removed from the group, the account keeps the PKP": async ({ world, ends }) => {
    await ends("payer", "removePkpFromGroup", [ALICE_ID, 1n, ALICE_PKP], "ok");
    expect((await world.manager.getGroup(ALICE_ID, 1)).pkpCount).to.equal(0n);
    expect((await world.manager.listPkps(ALICE_ID, 0, 9)).total).to.equal(1n);
  },
  "not listed, another account's, unregistered, or any: NotInGroup": async ({ ends }) => {
    for (const pkp of [BOB_PKP, walletOf("none"), ANY_PKP])
      await ends("payer", "removePkpFromGroup", [ALICE_ID, 1n, pkp], "NotInGroup");
  },
  "group 0: GroupZero; no such group: UnknownGroup": async ({ ends }) => {
    await ends("payer", "removePkpFromGroup", [ALICE_ID, 0n, ALICE_PKP], "GroupZero");
    await ends("payer", "removePkpFromGroup", [ALICE_ID, 2n, ALICE_PKP], "UnknownGroup");
  },
});
