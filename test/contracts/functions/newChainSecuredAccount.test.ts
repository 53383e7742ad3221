import { expect } from "chai";
import { packedId } from "../support/model";
import { describeFunction } from "../support/tree";

describeFunction("newChainSecuredAccount", {
  "for a wallet without account: creates one under its packed id": async ({ world, ends }) => {
    await ends("carol", "newChainSecuredAccount", ["name", "description"], "ok");
    const account = await world.manager.getAccount(packedId(world.cast.carol.address));
    expect([account.adminWalletAddress, account.managed]).to.deep.equal([world.cast.carol.address, false]);
  },
  "a second time: AccountIdTaken": ({ ends }) => ends("bob", "newChainSecuredAccount", ["", ""], "AccountIdTaken"),
  "after a transfer of the account: AccountIdTaken, the id stays with it": async ({ world, bobId, ends }) => {
    await world.do(world.cast.bob, "transferOwnership", bobId, world.cast.carol.address);
    await ends("bob", "newChainSecuredAccount", ["", ""], "AccountIdTaken");
  },
});
