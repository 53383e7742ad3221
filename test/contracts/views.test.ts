// Views of accounts and keys whose answers depend on the caller, or on every field of the answer.
import { time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, BOB_PKP, executeKey, twoAccounts } from "./support/stages";
import { cid, number, pathFor, staged, walletOf, type Cast } from "./support/world";

describe("Views that depend on the caller", () => {
  it("accountExistsAndIsMutable: only for the owner, and for a payer while managed", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { manager, cast } = world;
    const ask = async (id: bigint) => {
      const may: (keyof Cast)[] = [];
      for (const who of Object.keys(cast) as (keyof Cast)[])
        if (await manager.connect(cast[who]).accountExistsAndIsMutable(id)) may.push(who);
      return may;
    };
    expect(await ask(ALICE_ID)).to.have.members(["payer", "alice"]);
    expect(await ask(bobId)).to.deep.equal(["bob"]);
    for (const id of [0n, ALICE_KEY, number("nobody")]) expect(await ask(id)).to.deep.equal([]);
    await world.do(cast.alice, "transferOwnership", ALICE_ID, cast.carol.address);
    expect(await ask(ALICE_ID)).to.deep.equal(["carol"]);
  });

  it("getKey: expiration and cap each in their field", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    const expiration = BigInt(await time.latest()) + 1_000n;
    await world.do(
      cast.payer,
      "setUsageApiKey",
      ...executeKey(ALICE_ID, ALICE_KEY, [1n]).slice(0, 2),
      expiration,
      77n,
      ...executeKey(ALICE_ID, ALICE_KEY, [1n]).slice(4),
    );
    const key = await manager.getKey(ALICE_KEY);
    expect([key.expiration, key.balance, key.live, key.isAccountKey, key.owner]).to.deep.equal([
      expiration,
      77n,
      true,
      false,
      cast.alice.address,
    ]);
  });

  it("explainExecution: the block it was evaluated at, by number and time, allowed or not", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    for (const key of [ALICE_KEY, number("nobody")]) {
      await world.do(cast.payer, "updateAccountMetadata", ALICE_ID, `asked about ${key}`, "");
      const { number: block, timestamp } = (await manager.runner?.provider?.getBlock("latest")) ?? {};
      const answer = await manager.explainExecution(key, cid(1), ALICE_PKP, { blockTag: block as number });
      expect([answer.blockNumber, answer.blockTimestamp]).to.deep.equal([BigInt(block ?? 0), BigInt(timestamp ?? 0)]);
      expect(answer.allowed).to.equal(key === ALICE_KEY);
    }
  });

  it("explainExecution: a PKP that no group lists is not permitted, another account's is unknown", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    const unlisted = walletOf("unlisted");
    await world.do(cast.payer, "registerWalletDerivation", ALICE_ID, unlisted, pathFor(ALICE_ID, "unlisted"), "", "");
    const reasonOf = async (pkp: string) => (await manager.explainExecution(ALICE_KEY, cid(1), pkp)).reason;
    expect([await reasonOf(ALICE_PKP), await reasonOf(BOB_PKP), await reasonOf(unlisted)]).to.deep.equal([0n, 6n, 7n]);
  });
});
