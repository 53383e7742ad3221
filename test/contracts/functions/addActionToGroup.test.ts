import { expect } from "chai";
import { ALICE_ID } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";
import { must } from "../../support/must";

describeFunction("addActionToGroup", {
  "known to the account or not: listed": async ({ world, ends }) => {
    await world.do(world.cast.payer, "addAction", ALICE_ID, "two", "", cid(2));
    await ends("payer", "addActionToGroup", [ALICE_ID, 1n, cid(2)], "ok");
    await ends("payer", "addActionToGroup", [ALICE_ID, 1n, cid(3)], "ok");
    const { items } = await world.manager.listActionsInGroup(ALICE_ID, 1, 0, 9);
    expect(items.map((item) => item.name)).to.deep.equal(["", "two", ""]);
  },
  "any action, by the owner: listed first": async ({ world, ends }) => {
    await ends("payer", "addActionToGroup", [ALICE_ID, 1n, 0n], "ok");
    const { items, total } = await world.manager.listActionsInGroup(ALICE_ID, 1, 0, 1);
    expect([must(items[0]).actionHash, total]).to.deep.equal([0n, 2n]);
  },
  "listed already: no effect": ({ ends }) => ends("payer", "addActionToGroup", [ALICE_ID, 1n, cid(1)], "silent"),
  "group 0: GroupZero; no such group: UnknownGroup": async ({ ends }) => {
    await ends("payer", "addActionToGroup", [ALICE_ID, 0n, cid(1)], "GroupZero");
    await ends("payer", "addActionToGroup", [ALICE_ID, 2n, cid(1)], "UnknownGroup");
  },
});
