// F4: a scoped key raises its own scopes, or another key's, through the payer.
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, executeKey, fullKey, twoAccounts } from "../support/stages";
import { cid, number, pathFor, walletOf, staged } from "../support/world";

const CREATOR = number("a key that creates groups and executes everywhere");

describe("F4 a key grants itself rights", () => {
  it("a key with every scope cannot set, rename or remove any key, itself included", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL));
    for (const key of [ALICE_KEY, number("another")]) {
      expect(await world.call(payer, "setUsageApiKey", fullKey(ALICE_KEY, key, ALL))).to.equal("MissingScope");
      expect(await world.call(payer, "updateUsageApiKeyMetadata", [ALICE_KEY, key, "", ""])).to.equal("MissingScope");
      expect(await world.call(payer, "removeUsageApiKey", [ALICE_KEY, key])).to.equal("MissingScope");
    }
    for (const name of ["convertToChainSecuredAccount", "transferOwnership"]) {
      expect(await world.call(payer, name, [ALICE_KEY, payer.address])).to.equal("MissingScope");
    }
  });

  it("a key that may create groups and execute in all cannot create a group to run anything in", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    await world.do(payer, "setUsageApiKey", ALICE_ID, CREATOR, 0n, 0n, "", "", true, true, true, [], [], [], ALL);
    expect(await world.call(payer, "addGroup", [CREATOR, "", "", [cid(9)], []])).to.equal("MissingScope");
    expect(await world.call(payer, "addGroup", [CREATOR, "", "", [], [ALICE_PKP]])).to.equal("MissingScope");
    await world.do(payer, "addGroup", CREATOR, "empty", "", [], []);
    expect(await world.call(payer, "addActionToGroup", [CREATOR, 2n, cid(9)])).to.equal("MissingScope");
    expect(await world.manager.canUseWalletInAction(CREATOR, cid(9), ALICE_PKP)).to.equal(false);
  });

  it('no scope allows adding the members that mean "any"', async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const zero = "0x0000000000000000000000000000000000000000";
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL));
    const tries: [string, ...unknown[]][] = [
      ["addGroup", "", "", [cid(1), 0n], []],
      ["addGroup", "", "", [], [ALICE_PKP, zero]],
      ["addActionToGroup", 1n, 0n],
      ["removeActionFromGroup", 1n, 0n],
      ["addPkpToGroup", 1n, zero],
      ["removePkpFromGroup", 1n, zero],
      ["changeGroupMembers", 1n, [cid(2), 0n], [], [], []],
      ["changeGroupMembers", 1n, [], [0n], [], []],
      ["changeGroupMembers", 1n, [], [], [zero], []],
      ["changeGroupMembers", 1n, [], [], [], [zero]],
    ];
    for (const [name, ...args] of tries)
      expect(await world.call(payer, name, [ALICE_KEY, ...args]), name).to.equal("MissingScope");
  });

  it("multicall grants no further rights", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL));
    const encode = (name: string, args: readonly unknown[]) =>
      world.manager.interface.encodeFunctionData(name as "multicall", args as never);
    const legal = encode("registerWalletDerivation", [ALICE_KEY, walletOf("w"), pathFor(ALICE_ID, "w"), "", ""]);
    const raise = encode("setUsageApiKey", executeKey(ALICE_KEY, ALICE_KEY, ALL));
    const nested = encode("multicall", [[raise]]);
    for (const inner of [
      [legal, raise],
      [legal, nested],
    ]) {
      await expect(world.manager.connect(payer).multicall(inner)).to.be.revertedWithCustomError(
        world.manager,
        "MissingScope",
      );
    }
  });
});
