import { expect } from "chai";
import { ALICE_ID, ALICE_PKP } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("addAction", {
  "new to the account: ActionAdded, without any permission": async ({ world, ends }) => {
    await ends("payer", "addAction", [ALICE_ID, "two", "text", cid(2)], "ok");
    expect(await world.manager.canUseWalletInAction(ALICE_ID, cid(2), ALICE_PKP)).to.equal(false);
  },
  "known by a group, new strings: ActionUpdated": ({ ends }) =>
    ends("payer", "addAction", [ALICE_ID, "one", "", cid(1)], "ok"),
  "known, the same strings: no effect": ({ ends }) => ends("payer", "addAction", [ALICE_ID, "", "", cid(1)], "silent"),
  "action 0: ActionZero": ({ ends }) => ends("payer", "addAction", [ALICE_ID, "", "", 0n], "ActionZero"),
});
