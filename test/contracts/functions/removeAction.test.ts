import { expect } from "chai";
import { ALICE_ID, ALICE_PKP } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";
import { must } from "../../support/must";

describeFunction("removeAction", {
  "known: removed from the account and each group, one event": async ({ world, ends }) => {
    await world.do(world.cast.payer, "addGroup", ALICE_ID, "", "", [cid(1)], [ALICE_PKP]);
    await ends("payer", "removeAction", [ALICE_ID, cid(1)], "ok");
    expect((await world.manager.listActions(ALICE_ID, 0, 9)).total).to.equal(0n);
    for (const groupId of [1, 2]) expect((await world.manager.getGroup(ALICE_ID, groupId)).actionCount).to.equal(0n);
  },
  "added again: its old strings and groups are not restored": async ({ world, ends }) => {
    await world.do(world.cast.payer, "updateActionMetadata", ALICE_ID, cid(1), 0n, "name", "text");
    await world.do(world.cast.payer, "removeAction", ALICE_ID, cid(1));
    await ends("payer", "addAction", [ALICE_ID, "", "", cid(1)], "ok");
    expect((await world.manager.getGroup(ALICE_ID, 1)).actionCount).to.equal(0n);
    expect(must((await world.manager.listActions(ALICE_ID, 0, 9)).items[0]).name).to.equal("");
  },
  "a group that lists any action still permits it": async ({ world, ends }) => {
    await world.do(world.cast.payer, "addActionToGroup", ALICE_ID, 1n, 0n);
    await ends("payer", "removeAction", [ALICE_ID, cid(1)], "ok");
    expect(await world.manager.canUseWalletInAction(ALICE_ID, cid(1), ALICE_PKP)).to.equal(true);
  },
  "never known, removed, or 0: UnknownAction": async ({ world, ends }) => {
    await world.do(world.cast.payer, "removeAction", ALICE_ID, cid(1));
    for (const action of [cid(1), cid(2), 0n]) await ends("payer", "removeAction", [ALICE_ID, action], "UnknownAction");
  },
});
