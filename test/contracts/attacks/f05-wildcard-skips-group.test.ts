// F5: a key with the wildcard runs an action or uses a PKP that no group lists, or that no single group lists together.
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, BOB_PKP, executeKey, twoAccounts } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid, pathFor, walletOf, staged } from "../support/world";

const [SECOND_PKP, THIRD_PKP] = [walletOf("second"), walletOf("third")];

async function stage() {
  const { world } = await twoAccounts();
  const { payer } = world.cast;
  await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, ALICE_KEY, ALL));
  for (const pkp of [SECOND_PKP, THIRD_PKP])
    await world.do(payer, "registerWalletDerivation", ALICE_ID, pkp, pathFor(ALICE_ID, pkp), "", "");
  await world.do(payer, "addGroup", ALICE_ID, "", "", [cid(2)], [SECOND_PKP]);
  return {
    world,
    may: (action: bigint, pkp: string, key = ALICE_KEY) => world.manager.canUseWalletInAction(key, action, pkp),
  };
}

describe("F5 the wildcard widens the groups, nothing else", () => {
  it("runs what one group lists together, as the account key does", async () => {
    const { may } = await staged(stage);
    for (const key of [ALICE_KEY, ALICE_ID]) {
      expect(await may(cid(1), ALICE_PKP, key)).to.equal(true);
      expect(await may(cid(2), SECOND_PKP, key)).to.equal(true);
    }
  });

  it("refuses what two groups list separately, and what no group lists", async () => {
    const { may, world } = await staged(stage);
    for (const key of [ALICE_KEY, ALICE_ID]) {
      expect(await may(cid(1), SECOND_PKP, key)).to.equal(false);
      expect(await may(cid(2), ALICE_PKP, key)).to.equal(false);
      expect(await may(cid(1), THIRD_PKP, key)).to.equal(false);
      expect(await may(cid(9), ALICE_PKP, key)).to.equal(false);
      expect(await may(cid(1), BOB_PKP, key)).to.equal(false);
      expect(await may(cid(1), ANY_PKP, key)).to.equal(false);
      expect(await may(0n, ALICE_PKP, key)).to.equal(false);
      expect(await world.manager.canExecuteAction(key, cid(9))).to.equal(false);
    }
  });

  it(
    "a group that lists any action serves a CID the account has never listed; one that lists any PKP serves only " +
      "its account's PKPs",
    async () => {
      const { may, world } = await staged(stage);
      const { payer } = world.cast;
      await world.do(payer, "addGroup", ALICE_ID, "any action", "", [0n], [THIRD_PKP]);
      expect(await may(cid(1234), THIRD_PKP)).to.equal(true);
      expect(await may(cid(1234), ALICE_PKP)).to.equal(false);
      expect((await world.manager.explainExecution(ALICE_KEY, cid(1234), THIRD_PKP)).actionByName).to.equal(false);
      expect(await world.manager.canExecuteAction(ALICE_KEY, 0n)).to.equal(false);
      await world.do(payer, "addGroup", ALICE_ID, "any PKP", "", [cid(7)], [ANY_PKP]);
      for (const pkp of [ALICE_PKP, SECOND_PKP, THIRD_PKP]) expect(await may(cid(7), pkp)).to.equal(true);
      expect(await may(cid(7), BOB_PKP)).to.equal(false);
      expect(await may(cid(7), walletOf("nobody's"))).to.equal(false);
      expect((await world.manager.explainExecution(ALICE_KEY, cid(7), ALICE_PKP)).actionByName).to.equal(true);
    },
  );

  it("the wildcard includes groups created later, and ends when they are removed", async () => {
    const { may, world } = await staged(stage);
    const { payer } = world.cast;
    await world.do(payer, "addGroup", ALICE_ID, "", "", [cid(8)], [THIRD_PKP]);
    expect(await may(cid(8), THIRD_PKP)).to.equal(true);
    await world.do(payer, "removeGroup", ALICE_ID, 3n);
    expect(await may(cid(8), THIRD_PKP)).to.equal(false);
  });

  it("removing an action removes it from every group; adding it again restores no membership", async () => {
    const { may, world } = await staged(stage);
    const { payer } = world.cast;
    await world.do(payer, "addActionToGroup", ALICE_ID, 2n, cid(1));
    await world.do(payer, "removeAction", ALICE_ID, cid(1));
    for (const pkp of [ALICE_PKP, SECOND_PKP]) expect(await may(cid(1), pkp)).to.equal(false);
    await world.do(payer, "addActionToGroup", ALICE_ID, 2n, cid(1));
    expect([await may(cid(1), ALICE_PKP), await may(cid(1), SECOND_PKP)]).to.deep.equal([false, true]);
  });
});
