// F1: an attacker sets a usage key whose id is another account's key, or its present or future account id, to lock it
// out or take it over.
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

  it("the id of an existing account cannot be set as a key", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, payer } = world.cast;
    expect(await world.call(bob, "setUsageApiKey", fullKey(bobId, ALICE_ID, ALL))).to.equal("KeyIdTaken");
    expect(await world.manager.accountOf(ALICE_ID)).to.equal(ALICE_ID);
    expect(await world.manager.canUseWalletInAction(ALICE_ID, cid(1), ALICE_PKP)).to.equal(true);
    await world.do(payer, "addGroup", ALICE_ID, "still mine", "", [], []);
    expect((await world.manager.getAccount(ALICE_ID)).groupCount).to.equal(2n);
  });

  it("a key with a future wallet's id neither blocks its account nor acts in it", async () => {
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

  it("a key with a future managed account's id neither blocks it nor acts in it", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { bob, payer, carol } = world.cast;
    const id = number("an account key to come");
    await world.do(bob, "setUsageApiKey", ...fullKey(bobId, id, ALL));
    await world.do(payer, "newAccount", id, true, "", "", carol.address);
    expect(await world.manager.accountOf(id)).to.equal(id);
    await world.do(payer, "addGroup", id, "", "", [cid(1)], []);
    expect((await world.manager.listGroups(bobId, 0, 9)).total).to.equal(1n);
    expect(await world.call(bob, "removeGroup", [id, 1n])).to.equal("NotAuthorized");
    // The unusable entry can be removed, but not set again.
    expect(await world.call(bob, "setUsageApiKey", fullKey(bobId, id, []))).to.equal("KeyIdTaken");
    await world.do(bob, "removeUsageApiKey", bobId, id);
    expect(await world.manager.canExecuteAction(id, cid(1))).to.equal(true);
  });
});
