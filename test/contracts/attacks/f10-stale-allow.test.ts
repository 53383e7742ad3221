// F10: a removed permission still works. Every way to end a permission takes effect in the next decision, in the same
// block.
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, executeKey, twoAccounts } from "../support/stages";
import { cid, staged } from "../support/world";

const ENDS: Record<string, [string, ...unknown[]]> = {
  "the key is removed": ["removeUsageApiKey", ALICE_ID, ALICE_KEY],
  "the key loses the group": ["setUsageApiKey", ...executeKey(ALICE_ID, ALICE_KEY, [])],
  "the group is removed": ["removeGroup", ALICE_ID, 1n],
  "the action leaves the group": ["removeActionFromGroup", ALICE_ID, 1n, cid(1)],
  "the action is removed": ["removeAction", ALICE_ID, cid(1)],
  "the PKP leaves the group": ["removePkpFromGroup", ALICE_ID, 1n, ALICE_PKP],
  "both leave in one call": ["changeGroupMembers", ALICE_ID, 1n, [], [cid(1)], [], [ALICE_PKP]],
  "the group is given other members": ["updateGroup", ALICE_ID, 1n, "", "", [cid(2)], [ALICE_PKP]],
};

describe("F10 removed permissions end at once", () => {
  for (const [what, [name, ...args]] of Object.entries(ENDS)) {
    it(`when ${what}`, async () => {
      const { world } = await staged(twoAccounts);
      expect(await world.manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP)).to.equal(true);
      await world.do(world.cast.payer, name, ...args);
      expect(await world.manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP, { blockTag: "latest" })).to.equal(
        false,
      );
    });
  }

  it("a removed payer is refused in its next transaction", async () => {
    const { world } = await staged(twoAccounts);
    await world.do(world.cast.admin, "removeApiPayer", world.cast.payer.address);
    expect(await world.call(world.cast.payer, "removeGroup", [ALICE_ID, 1n])).to.equal("NotAuthorized");
    expect(await world.manager.connect(world.cast.payer).accountExistsAndIsMutable(ALICE_ID)).to.equal(false);
  });
});
