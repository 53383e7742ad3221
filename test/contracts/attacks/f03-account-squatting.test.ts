// F3: an attacker creates an account under another's id, or takes one over.
import { expect } from "chai";
import { packedId } from "../support/model";
import { ALICE_ID, twoAccounts } from "../support/stages";
import { number, staged } from "../support/world";

describe("F3 account squatting", () => {
  it("only a payer creates managed accounts; only a wallet creates its own", async () => {
    const { world } = await staged(twoAccounts);
    const { stranger, carol, payer } = world.cast;
    const carolId = packedId(carol.address);
    expect(await world.call(stranger, "newAccount", [number("x"), true, "", "", stranger.address])).to.equal(
      "NotAuthorized",
    );
    expect(await world.call(stranger, "newAccount", [carolId, false, "", "", carol.address])).to.equal("NotAuthorized");
    expect(await world.call(stranger, "newAccount", [carolId, false, "", "", stranger.address])).to.equal(
      "ForeignAccountId",
    );
    expect(await world.call(payer, "newAccount", [carolId, false, "", "", carol.address])).to.equal("NotAuthorized");
    await world.do(carol, "newAccount", carolId, false, "", "", carol.address);
  });

  it("an existing account cannot be created again, by any caller, in either mode", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { payer, bob, stranger } = world.cast;
    for (const id of [ALICE_ID, bobId])
      expect(await world.call(payer, "newAccount", [id, true, "", "", stranger.address])).to.equal("AccountIdTaken");
    expect(await world.call(bob, "newChainSecuredAccount", ["", ""])).to.equal("AccountIdTaken");
  });

  it("a payer can neither convert, transfer nor change an unmanaged account, nor one it has converted", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { payer, carol } = world.cast;
    await world.do(payer, "convertToChainSecuredAccount", ALICE_ID, carol.address);
    for (const id of [bobId, ALICE_ID]) {
      for (const name of ["convertToChainSecuredAccount", "transferOwnership"]) {
        expect(await world.call(payer, name, [id, payer.address])).to.equal("AccountChainSecured");
      }
      expect(await world.call(payer, "updateAccountMetadata", [id, "seized", ""])).to.equal("AccountChainSecured");
    }
  });

  it("the contract admin has no access to any account", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { admin } = world.cast;
    for (const id of [bobId, ALICE_ID])
      expect(await world.call(admin, "transferOwnership", [id, admin.address])).to.equal("NotAuthorized");
    await world.do(admin, "addApiPayer", admin.address); // the most it can do: appoint itself a payer
    expect(await world.call(admin, "transferOwnership", [bobId, admin.address])).to.equal("AccountChainSecured");
  });

  it("the old owner loses all rights with the transfer, and with the conversion", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, alice, carol, payer } = world.cast;
    await world.do(bob, "transferOwnership", bobId, carol.address);
    expect(await world.call(bob, "removeGroup", [bobId, 1n])).to.equal("NotAuthorized");
    await world.do(carol, "removeGroup", bobId, 1n);
    await world.do(payer, "transferOwnership", ALICE_ID, carol.address);
    expect(await world.call(alice, "removeGroup", [ALICE_ID, 1n])).to.equal("NotAuthorized");
    expect((await world.manager.getKey(ALICE_ID)).live).to.equal(false);
  });
});
