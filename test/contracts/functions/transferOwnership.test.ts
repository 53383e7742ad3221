import { expect } from "chai";
import { ethers } from "hardhat";
import { ALICE_ID, ALICE_KEY, ALICE_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("transferOwnership", {
  "of an unmanaged account: the new owner has every right, the old one none": async ({ world, bobId, ends }) => {
    await ends("bob", "transferOwnership", [bobId, world.cast.carol.address], "ok");
    await ends("bob", "updateAccountMetadata", [bobId, "x", ""], "NotAuthorized");
    await ends("carol", "updateAccountMetadata", [bobId, "x", ""], "ok");
  },
  "of a managed account, by the owner or a payer: it becomes ChainSecured, its usage keys stay valid": async ({
    world,
    ends,
  }) => {
    await ends("payer", "transferOwnership", [ALICE_ID, world.cast.carol.address], "ok");
    expect((await world.manager.getAccount(ALICE_ID)).managed).to.equal(false);
    expect(await world.manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP)).to.equal(true);
    await ends("payer", "transferOwnership", [ALICE_ID, world.cast.payer.address], "AccountChainSecured");
  },
  "to zero: ZeroAddress": ({ bobId, ends }) => ends("bob", "transferOwnership", [bobId, ANY_PKP], "ZeroAddress"),
  "to the contract: OwnerIsThisContract": async ({ world, bobId, ends }) =>
    ends("bob", "transferOwnership", [bobId, await world.manager.getAddress()], "OwnerIsThisContract"),
  "to a delegate of the contract: OwnerIsThisContract": async ({ world, bobId, ends }) => {
    const payers = ethers.getCreateAddress({ from: await world.manager.getAddress(), nonce: 1 });
    const lists = ethers.getCreateAddress({ from: payers, nonce: 1 });
    for (const delegate of [payers, lists]) {
      expect(await ethers.provider.getCode(delegate)).to.have.length.greaterThan(1_000);
      await ends("bob", "transferOwnership", [bobId, delegate], "OwnerIsThisContract");
    }
  },
  "to the present owner: SameOwner, managed or not": async ({ world, bobId, ends }) => {
    await ends("bob", "transferOwnership", [bobId, world.cast.bob.address], "SameOwner");
    await ends("payer", "transferOwnership", [ALICE_ID, world.cast.alice.address], "SameOwner");
  },
});
