import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, BOB_PKP, fullKey } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid, walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("addGroup", {
  "empty: the next id, answered and in the event": async ({ world, ends }) => {
    expect(await world.manager.connect(world.cast.payer).addGroup.staticCall(ALICE_ID, "", "", [], [])).to.equal(2n);
    await ends("payer", "addGroup", [ALICE_ID, "name", "description", [], []], "ok");
  },
  "with members: one event each; duplicates count once": async ({ world, ends }) => {
    await ends(
      "payer",
      "addGroup",
      [ALICE_ID, "", "", [cid(1), cid(2), cid(1), 0n], [ALICE_PKP, ALICE_PKP, ANY_PKP]],
      "ok",
    );
    const group = await world.manager.getGroup(ALICE_ID, 2);
    expect([group.actionCount, group.pkpCount]).to.deep.equal([3n, 2n]);
  },
  "by a usage key: each event names the key": async ({ world, ends }) => {
    await world.do(world.cast.payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL));
    await ends("payer", "addGroup", [ALICE_KEY, "", "", [cid(1), cid(5)], [ALICE_PKP]], "ok");
  },
  "an action new to the account: becomes one of its actions": async ({ world, ends }) => {
    await ends("payer", "addGroup", [ALICE_ID, "", "", [cid(5)], []], "ok");
    expect((await world.manager.listActions(ALICE_ID, 0, 9)).items.map((item) => item.actionHash)).to.deep.equal([
      cid(1),
      cid(5),
    ]);
  },
  "after a removal: ids are never used again": async ({ world, ends }) => {
    await world.do(world.cast.payer, "removeGroup", ALICE_ID, 1n);
    await ends("payer", "addGroup", [ALICE_ID, "", "", [], []], "ok");
    expect((await world.manager.listGroups(ALICE_ID, 0, 9)).items.map((item) => item.id)).to.deep.equal([2n]);
  },
  "a PKP that is not the account's: UnknownPkp, and no group": async ({ world, ends }) => {
    for (const pkp of [BOB_PKP, walletOf("none")])
      await ends("payer", "addGroup", [ALICE_ID, "", "", [], [ALICE_PKP, pkp]], "UnknownPkp");
    expect((await world.manager.getAccount(ALICE_ID)).lastGroupId).to.equal(1n);
  },
});
