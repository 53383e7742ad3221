import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("convertToChainSecuredAccount", {
  managed: {
    "by a payer or the owner: everything stays, the account key is revoked, usage keys stay valid": async ({
      world,
      ends,
    }) => {
      const { manager, cast } = world;
      await ends("payer", "convertToChainSecuredAccount", [ALICE_ID, cast.carol.address], "ok");
      const { managed, owner, live } = await manager.getKey(ALICE_ID);
      expect([managed, owner, live]).to.deep.equal([false, cast.carol.address, false]);
      expect(await manager.canUseWalletInAction(ALICE_ID, cid(1), ALICE_PKP)).to.equal(false);
      expect(await manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP)).to.equal(true);
      await ends("payer", "addGroup", [ALICE_ID, "", "", [], []], "AccountChainSecured");
      await ends("carol", "addGroup", [ALICE_ID, "", "", [], []], "ok");
    },
    "by the owner, keeping itself: a conversion": async ({ world, ends }) => {
      await ends("alice", "convertToChainSecuredAccount", [ALICE_ID, world.cast.alice.address], "ok");
      expect((await world.allLogs()).at(-1)?.name).to.equal("AccountConvertedToChainSecured");
    },
    "by the owner to another wallet: a transfer, since nobody has verified that wallet's consent": async ({
      world,
      ends,
    }) => {
      await ends("alice", "convertToChainSecuredAccount", [ALICE_ID, world.cast.carol.address], "ok");
      expect((await world.allLogs()).at(-1)?.name).to.equal("AccountOwnershipTransferred");
    },
    "by a payer: a conversion": async ({ world, ends }) => {
      await ends("payer", "convertToChainSecuredAccount", [ALICE_ID, world.cast.carol.address], "ok");
      expect((await world.allLogs()).at(-1)?.name).to.equal("AccountConvertedToChainSecured");
    },
    "new owner zero: ZeroAddress": ({ ends }) =>
      ends("payer", "convertToChainSecuredAccount", [ALICE_ID, ANY_PKP], "ZeroAddress"),
    "new owner is the contract: OwnerIsThisContract": async ({ world, ends }) =>
      ends(
        "payer",
        "convertToChainSecuredAccount",
        [ALICE_ID, await world.manager.getAddress()],
        "OwnerIsThisContract",
      ),
  },
  unmanaged: {
    "by any caller, the owner included: AccountChainSecured, conversion is final": async ({ world, bobId, ends }) => {
      for (const who of ["bob", "payer"] as const)
        await ends(who, "convertToChainSecuredAccount", [bobId, world.cast.bob.address], "AccountChainSecured");
    },
  },
});
