// F7, F8 and F9: group, key and account ids of one account used against another; removal without the right; one kind of
// id used as the other.
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, BOB_PKP, executeKey, fullKey, twoAccounts } from "../support/stages";
import { cid, number, staged } from "../support/world";

describe("F7 group ids are local to an account", () => {
  it("group 1 of one account grants nothing in group 1 of another", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { manager, cast } = world;
    const bobKey = number("bob's key");
    await world.do(cast.bob, "setUsageApiKey", ...executeKey(bobId, bobKey, ALL));
    expect(await manager.canUseWalletInAction(bobKey, cid(1), BOB_PKP)).to.equal(true);
    expect(await manager.canUseWalletInAction(bobKey, cid(1), ALICE_PKP)).to.equal(false);
    expect(await manager.canUseWalletInAction(ALICE_KEY, cid(1), BOB_PKP)).to.equal(false);
    await world.do(cast.bob, "removeGroup", bobId, 1n);
    expect(await manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP)).to.equal(true);
  });

  it("a list cannot name a group that the account has not created yet", async () => {
    const { world, bobId } = await staged(twoAccounts);
    await world.do(world.cast.bob, "addGroup", bobId, "", "", [], []);
    expect(await world.call(world.cast.payer, "setUsageApiKey", executeKey(ALICE_ID, ALICE_KEY, [2n]))).to.equal(
      "UnknownGroup",
    );
    expect(
      await world.call(world.cast.payer, "setUsageApiKey", executeKey(ALICE_ID, ALICE_KEY, [(1n << 256n) - 1n])),
    ).to.equal("UnknownGroup");
  });
});

describe("F8 removing needs the same rights as adding", () => {
  it("other wallets and other owners remove nothing", async () => {
    const { world } = await staged(twoAccounts);
    const removals: [string, ...unknown[]][] = [
      ["removeGroup", 1n],
      ["removeActionFromGroup", 1n, cid(1)],
      ["removePkpFromGroup", 1n, ALICE_PKP],
      ["changeGroupMembers", 1n, [], [cid(1)], [], [ALICE_PKP]],
      ["removeAction", cid(1)],
      ["removeUsageApiKey", ALICE_KEY],
      ["updateGroup", 1n, "", "", [], []],
    ];
    for (const [name, ...args] of removals) {
      for (const caller of [world.cast.stranger, world.cast.bob, world.cast.admin]) {
        expect(await world.call(caller, name, [ALICE_ID, ...args]), name).to.equal("NotAuthorized");
      }
    }
  });

  it("an owner cannot remove another account's key by naming their own account", async () => {
    const { world, bobId } = await staged(twoAccounts);
    expect(await world.call(world.cast.bob, "removeUsageApiKey", [bobId, ALICE_KEY])).to.equal("UnknownUsageKey");
    expect(await world.call(world.cast.bob, "updateUsageApiKeyMetadata", [bobId, ALICE_KEY, "", ""])).to.equal(
      "UnknownUsageKey",
    );
  });
});

describe("F9 one kind of id is not accepted as the other", () => {
  it("the owner's wallet has no rights under a usage key's id", async () => {
    const { world } = await staged(twoAccounts);
    await world.do(world.cast.payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL));
    expect(await world.call(world.cast.alice, "addGroup", [ALICE_KEY, "", "", [], []])).to.equal("NotAuthorized");
  });

  it("views that expect an account refuse a key's id, and vice versa", async () => {
    const { world } = await staged(twoAccounts);
    const { manager } = world;
    await expect(manager.getAccount(ALICE_KEY))
      .to.be.revertedWithCustomError(manager, "UnknownAccount")
      .withArgs(ALICE_KEY);
    await expect(manager.listGroups(ALICE_KEY, 0, 1)).to.be.revertedWithCustomError(manager, "UnknownAccount");
    await expect(manager.getUsageApiKey(ALICE_ID))
      .to.be.revertedWithCustomError(manager, "UnknownUsageKey")
      .withArgs(ALICE_ID);
    expect(await manager.accountExistsAndIsMutable(ALICE_KEY)).to.equal(false);
  });
});
