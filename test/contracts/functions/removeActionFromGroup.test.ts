import { expect } from "chai";
import { ALICE_ID } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("removeActionFromGroup", {
  "listed: removed from the group, the account keeps the action": async ({ world, ends }) => {
    await ends("payer", "removeActionFromGroup", [ALICE_ID, 1n, cid(1)], "ok");
    expect((await world.manager.listActionsInGroup(ALICE_ID, 1, 0, 9)).total).to.equal(0n);
    expect((await world.manager.listActions(ALICE_ID, 0, 9)).total).to.equal(1n);
  },
  "not listed, never known, retired, or any: NotInGroup": async ({ world, ends }) => {
    await world.do(world.cast.payer, "addActionToGroup", ALICE_ID, 1n, cid(2));
    await world.do(world.cast.payer, "removeAction", ALICE_ID, cid(2));
    for (const action of [cid(2), cid(3), 0n])
      await ends("payer", "removeActionFromGroup", [ALICE_ID, 1n, action], "NotInGroup");
  },
  "group 0: GroupZero; no such group: UnknownGroup": async ({ ends }) => {
    await ends("payer", "removeActionFromGroup", [ALICE_ID, 0n, cid(1)], "GroupZero");
    await ends("payer", "removeActionFromGroup", [ALICE_ID, 2n, cid(1)], "UnknownGroup");
  },
});
