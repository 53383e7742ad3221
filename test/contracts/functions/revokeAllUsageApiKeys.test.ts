import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALL, executeKey, fullKey } from "../support/stages";
import { cid, number } from "../support/world";
import { describeFunction } from "../support/tree";
import { expectViews } from "../support/views";

const OTHER = number("other key");

describeFunction("revokeAllUsageApiKeys", {
  "keys are set: each is invalid at once, and its id unusable permanently": async ({ world, ends }) => {
    const { manager } = world;
    await ends("payer", "setUsageApiKey", fullKey(ALICE_ID, OTHER, ALL), "ok");
    await ends("payer", "revokeAllUsageApiKeys", [ALICE_ID], "ok");
    for (const key of [ALICE_KEY, OTHER]) {
      expect(await manager.canExecuteAction(key, cid(1))).to.equal(false);
      const { accountId, live, expiration, balance } = await manager.getKey(key);
      expect([accountId, live, expiration, balance]).to.deep.equal([ALICE_ID, false, 0n, 0n]);
      await ends("payer", "addGroup", [key, "", "", [], []], "UnknownUsageKey");
      await ends("payer", "updateUsageApiKeyMetadata", [ALICE_ID, key, "n", ""], "UnknownUsageKey");
      await ends("payer", "removeUsageApiKey", [ALICE_ID, key], "UnknownUsageKey");
      await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, key, []), "KeyRevoked");
    }
    await expectViews(manager, world.model.state);
  },
  "keys set afterwards are valid, until the next revocation": async ({ world, ends }) => {
    await ends("payer", "revokeAllUsageApiKeys", [ALICE_ID], "ok");
    await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, OTHER, [1n]), "ok");
    expect(await world.manager.canExecuteAction(OTHER, cid(1))).to.equal(true);
    await expectViews(world.manager, world.model.state);
    await ends("payer", "removeUsageApiKey", [ALICE_ID, OTHER], "ok");
    await ends("payer", "revokeAllUsageApiKeys", [ALICE_ID], "silent");
  },
  "no key is set: no effect": async ({ bobId, ends }) => {
    await ends("bob", "revokeAllUsageApiKeys", [bobId], "silent");
  },
  "another account's keys stay valid": async ({ world, bobId, ends }) => {
    await ends("bob", "setUsageApiKey", executeKey(bobId, OTHER, [1n]), "ok");
    await ends("bob", "revokeAllUsageApiKeys", [bobId], "ok");
    expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(true);
  },
  "with a transfer in one transaction: the new owner receives no valid key": async ({ world, bobId, ends }) => {
    const { manager, cast } = world;
    await ends("bob", "setUsageApiKey", executeKey(bobId, OTHER, [1n]), "ok");
    const revoke = manager.interface.encodeFunctionData("revokeAllUsageApiKeys", [bobId]);
    const transfer = manager.interface.encodeFunctionData("transferOwnership", [bobId, cast.carol.address]);
    await manager.connect(cast.bob).multicall([revoke, transfer]);
    expect(await manager.canExecuteAction(OTHER, cid(1))).to.equal(false);
    expect((await manager.getAccount(bobId)).adminWalletAddress).to.equal(cast.carol.address);
  },
  "costs the same for one key and for fifty": async ({ world }) => {
    const { manager, cast } = world;
    const used = async () => {
      const { gasUsed } = (await (await manager.connect(cast.payer).revokeAllUsageApiKeys(ALICE_ID)).wait()) ?? {
        gasUsed: 0n,
      };
      return gasUsed;
    };
    await world.do(cast.payer, "revokeAllUsageApiKeys", ALICE_ID);
    await world.do(cast.payer, "setUsageApiKey", ...executeKey(ALICE_ID, OTHER, [1n]));
    const one = await used();
    for (let i = 0; i < 50; i++)
      await manager.connect(cast.payer).setUsageApiKey(...executeKey(ALICE_ID, number(`key ${i}`), [1n]));
    expect(await used()).to.equal(one);
  },
});
