import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("removeGroup", {
  "an existing group: removed from lists and decisions at once": async ({ world, ends }) => {
    await ends("payer", "removeGroup", [ALICE_ID, 1n], "ok");
    expect((await world.manager.listGroups(ALICE_ID, 0, 9)).total).to.equal(0n);
    for (const key of [ALICE_KEY, ALICE_ID])
      expect(await world.manager.canUseWalletInAction(key, cid(1), ALICE_PKP)).to.equal(false);
  },
  "twice: UnknownGroup": async ({ ends }) => {
    await ends("payer", "removeGroup", [ALICE_ID, 1n], "ok");
    await ends("payer", "removeGroup", [ALICE_ID, 1n], "UnknownGroup");
  },
  "group 0: GroupZero, though a list may name it": ({ ends }) =>
    ends("payer", "removeGroup", [ALICE_ID, 0n], "GroupZero"),
});
