// F1: somebody sets a usage key whose id is another account's key, or its present or future account id, to cut it off or take it over.
import { expect } from "chai";
import { packedId } from "../support/model";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, executeKey, fullKey, twoAccounts } from "../support/stages";
import { cid, number, staged } from "../support/world";

describe("F1 key squatting", () => {
  it("another account's key id is refused, also after its removal", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, payer } = world.cast;
    expect(await world.call(bob, "setUsageApiKey", executeKey(bobId, ALICE_KEY, ALL))).to.equal("KeyIdTaken");
    await world.do(payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
    expect(await world.call(bob, "setUsageApiKey", executeKey(bobId, ALICE_KEY, ALL))).to.equal("KeyIdTaken");
    expect(await world.manager.accountOf(ALICE_KEY)).to.equal(ALICE_ID);
  });

  it("a key under another account's id changes nothing for that account", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, payer } = world.cast;
    await world.do(bob, "setUsageApiKey", ...fullKey(bobId, ALICE_ID, ALL));
    expect(await world.manager.accountOf(ALICE_ID)).to.equal(ALICE_ID);
    expect(await world.manager.canUseWalletInAction(ALICE_ID, cid(1), ALICE_PKP)).to.equal(true);
    await world.do(payer, "addGroup", ALICE_ID, "still mine", "", [], []);
    expect((await world.manager.getAccount(ALICE_ID)).groupCount).to.equal(2n);
  });

  it("a key under a future wallet's id neither stops its account nor acts in it", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, carol, payer } = world.cast;
    const carolId = packedId(carol.address);
    await world.do(bob, "setUsageApiKey", ...fullKey(bobId, carolId, ALL));
    await world.do(carol, "newChainSecuredAccount", "carol", "");
    await world.do(carol, "addGroup", carolId, "", "", [cid(1)], []);
    const { accountId, isAccountKey, live } = await world.manager.getKey(carolId);
    expect([accountId, isAccountKey, live]).to.deep.equal([carolId, true, false]);
    expect(await world.manager.canExecuteAction(carolId, cid(1))).to.equal(false);
    expect(await world.call(payer, "removeGroup", [carolId, 1n])).to.equal("AccountChainSecured");
  });

  it("a managed account cannot be made under an id that was ever a key's", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, payer, carol } = world.cast;
    const id = number("an account key to come");
    await world.do(bob, "setUsageApiKey", ...executeKey(bobId, id, ALL));
    expect(await world.call(payer, "newAccount", [id, true, "", "", carol.address])).to.equal("KeyIdTaken");
    await world.do(bob, "removeUsageApiKey", bobId, id);
    expect(await world.call(payer, "newAccount", [id, true, "", "", carol.address])).to.equal("KeyIdTaken");
  });

  it("a key that is set again starts from nothing", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL));
    await world.do(payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
    await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, ALICE_KEY, []));
    const key = await world.manager.getUsageApiKey(ALICE_KEY);
    expect([key.createGroups, key.deleteGroups, key.createPKPs, key.executeInGroups.length]).to.deep.equal([false, false, false, 0]);
    expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(false);
  });
});
