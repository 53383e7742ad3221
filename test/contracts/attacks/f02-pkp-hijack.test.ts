// F2: an attacker registers a victim's PKP or derivation path under their own account and signs with the victim's key.
import { expect } from "chai";
import { ALICE_ID, ALICE_PKP, BOB_PKP, twoAccounts } from "../support/stages";
import { cid, pathFor, walletOf, staged } from "../support/world";

describe("F2 PKP hijack", () => {
  it("an address registered elsewhere first blocks no other account, and each account's path is its own", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, payer } = world.cast;
    const pending = walletOf("minted for Alice, not registered yet");
    await world.do(bob, "registerWalletDerivation", bobId, pending, pathFor(bobId, "x"), "", "");
    await world.do(payer, "registerWalletDerivation", ALICE_ID, pending, pathFor(ALICE_ID, "pending"), "", "");
    expect(await world.manager.getWalletDerivation(ALICE_ID, pending)).to.equal(pathFor(ALICE_ID, "pending"));
    // The executor derives Bob's key from Bob's path, which does not lead to the address.
    expect(await world.manager.getWalletDerivation(bobId, pending)).to.equal(pathFor(bobId, "x"));
  });

  it("a victim's path is refused under any other account, whatever the address", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const stolen = pathFor(ALICE_ID, "pkp");
    expect(
      await world.call(world.cast.bob, "registerWalletDerivation", [bobId, walletOf("alias"), stolen, "", ""]),
    ).to.equal("ForeignDerivationPath");
  });

  it("a path of unknown kind is refused; the wallet of a usage key is not a PKP", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob } = world.cast;
    for (const kind of [0n, 3n, 255n]) {
      expect(
        await world.call(bob, "registerWalletDerivation", [bobId, walletOf("new"), pathFor(bobId, "x", kind), "", ""]),
      ).to.equal("UnknownPathKind");
    }
    const wallet = walletOf("usage key's wallet");
    await world.do(bob, "registerWalletDerivation", bobId, wallet, pathFor(bobId, "x", 2n), "", "");
    expect(await world.manager.getWalletDerivation(bobId, wallet)).to.equal(pathFor(bobId, "x", 2n));
    expect((await world.manager.listPkps(bobId, 0, 10)).total).to.equal(1n);
    expect(await world.call(bob, "addPkpToGroup", [bobId, 1n, wallet])).to.equal("UnknownPkp");
    expect(await world.call(bob, "registerWalletDerivation", [bobId, wallet, pathFor(bobId, "x"), "", ""])).to.equal(
      "PkpTaken",
    );
  });

  it("another account's PKP cannot be listed, used, renamed or removed", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob } = world.cast;
    expect(await world.call(bob, "addPkpToGroup", [bobId, 1n, ALICE_PKP])).to.equal("UnknownPkp");
    expect(await world.call(bob, "addGroup", [bobId, "", "", [], [BOB_PKP, ALICE_PKP]])).to.equal("UnknownPkp");
    expect(await world.call(bob, "updateGroup", [bobId, 1n, "", "", [], [ALICE_PKP]])).to.equal("UnknownPkp");
    // Alice's group 1 lists it, Bob's does not.
    expect(await world.call(bob, "removePkpFromGroup", [bobId, 1n, ALICE_PKP])).to.equal("NotInGroup");
    expect(await world.call(bob, "changeGroupMembers", [bobId, 1n, [], [], [], [ALICE_PKP]])).to.equal("NotInGroup");
    expect(await world.call(bob, "updatePkpMetadata", [bobId, ALICE_PKP, "", ""])).to.equal("UnknownPkp");
    await world.do(bob, "addGroup", bobId, "", "", [cid(1)], ["0x0000000000000000000000000000000000000000"]);
    expect((await world.manager.explainExecution(bobId, cid(1), ALICE_PKP)).allowed).to.equal(false);
  });
});
