// F6 and invariant 8: an expired key still executes or writes. A key is live iff its expiration is 0 or the block time
// is before it, tested at the boundary second.
import { time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, fullKey, twoAccounts } from "../support/stages";
import { cid, staged } from "../support/world";

describe("F6 expiry", () => {
  it("a key decides and holds scopes until the last second before its expiration, and not at that second", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    const expiration = BigInt(await time.latest()) + 1000n;
    await world.do(cast.payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL, expiration));
    for (const [second, live] of [
      [expiration - 1n, true],
      [expiration, false],
      [expiration + 1n, false],
    ] as const) {
      await time.increaseTo(second);
      expect(await manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP)).to.equal(live);
      expect(await manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(live);
      expect((await manager.explainExecution(ALICE_KEY, cid(1), ALICE_PKP)).reason).to.equal(live ? 0n : 2n);
      expect((await manager.getKey(ALICE_KEY)).live).to.equal(live);
      for (let scope = 0; scope < 7; scope++) expect(await manager.hasScope(ALICE_KEY, scope, 1n)).to.equal(live);
    }
  });

  it("a write passes in the last second and is refused at the expiration", async () => {
    for (const [second, end] of [
      [-1n, undefined],
      [0n, "KeyExpired"],
    ] as const) {
      const { world } = await staged(twoAccounts);
      const now = BigInt(await time.latest());
      await world.do(world.cast.payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL, now + 1000n));
      const wait = Number(now + 1000n + second) - (await time.latest());
      expect(await world.call(world.cast.payer, "addGroup", [ALICE_KEY, "", "", [], []], wait)).to.equal(end);
    }
  });

  it(
    "an expiration in the past is accepted and the key is expired at once; the owner can still " +
      "see, rename, renew and remove it",
    async () => {
      const { world } = await staged(twoAccounts);
      const { payer } = world.cast;
      await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL, 1n));
      expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(false);
      expect((await world.manager.getUsageApiKey(ALICE_KEY)).expiration).to.equal(1n);
      await world.do(payer, "updateUsageApiKeyMetadata", ALICE_ID, ALICE_KEY, "dead", "");
      await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, ALL, 0n));
      expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(true);
      await world.do(payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
    },
  );

  it("the largest expiration and balance are stored exactly, larger ones are refused", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const key = (expiration: bigint, balance: bigint) => [
      ALICE_ID,
      ALICE_KEY,
      expiration,
      balance,
      "",
      "",
      false,
      false,
      false,
      [],
      [],
      [],
      ALL,
    ];
    await world.do(payer, "setUsageApiKey", ...key((1n << 40n) - 1n, (1n << 64n) - 1n));
    const stored = await world.manager.getUsageApiKey(ALICE_KEY);
    expect([stored.expiration, stored.balance]).to.deep.equal([(1n << 40n) - 1n, (1n << 64n) - 1n]);
    expect(await world.call(payer, "setUsageApiKey", key(1n << 40n, 0n))).to.equal("ValueTooLarge");
    expect(await world.call(payer, "setUsageApiKey", key(0n, 1n << 64n))).to.equal("ValueTooLarge");
    expect(await world.call(payer, "setUsageApiKey", key((1n << 256n) - 1n, 0n))).to.equal("ValueTooLarge");
  });
});
