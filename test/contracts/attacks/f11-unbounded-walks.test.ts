// F11 and invariant 11: a write whose gas grows with the account until it no longer fits into a block, or a decision
// whose gas grows faster than the interface says.
import { setStorageAt, takeSnapshot } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { ethers } from "hardhat";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, executeKey, twoAccounts } from "../support/stages";
import { accountSlot, cid, number, pathFor, walletOf, staged, type World } from "../support/world";
import { must } from "../../support/must";

const GROUPS = 200; // within the first word: not one unit of gas may be added
const OTHERS = 250;

/** Gas of each kind of write in the present state. Calls are simulated, so that each sees the same state. */
async function prices({ world }: Awaited<ReturnType<typeof twoAccounts>>): Promise<Record<string, bigint>> {
  const manager = world.manager.connect(world.cast.payer);
  const id = ALICE_ID;
  return {
    addGroup: await manager.addGroup.estimateGas(id, "", "", [cid(1)], [ALICE_PKP]),
    removeGroup: await manager.removeGroup.estimateGas(id, 1n),
    updateGroup: await manager.updateGroup.estimateGas(id, 1n, "group", "", [cid(1)], [ALICE_PKP]),
    changeGroupMembers: await manager.changeGroupMembers.estimateGas(id, 1n, [], [cid(1)], [], [ALICE_PKP]),
    removeAction: await manager.removeAction.estimateGas(id, cid(1)),
    registerWalletDerivation: await manager.registerWalletDerivation.estimateGas(
      id,
      walletOf("next"),
      pathFor(id, "next"),
      "",
      "",
    ),
    setUsageApiKey: await manager.setUsageApiKey.estimateGas(...executeKey(id, number("fresh"), ALL)),
    removeUsageApiKey: await manager.removeUsageApiKey.estimateGas(id, ALICE_KEY),
    convertToChainSecuredAccount: await manager.convertToChainSecuredAccount.estimateGas(id, walletOf("owner")),
    decision: await manager.canUseWalletInAction.estimateGas(ALICE_KEY, cid(1), ALICE_PKP),
  };
}

describe("F11 the gas of writes does not grow with the account, that of decisions by 224 group ids at a time", () => {
  it("a decision reads a word for each 224 group ids ever used, at 2,500 gas where none of them exists", async () => {
    const { world } = await staged(twoAccounts);
    const { manager } = world;
    const slot = await lastGroupSlot(world);
    const word = BigInt(await ethers.provider.getStorage(manager, slot));
    expect(word & 0xffff_ffffn).to.equal(1n);
    await world.do(world.cast.payer, "setUsageApiKey", ...executeKey(ALICE_ID, number("any"), ALL));
    const gas = async (lastGroupId: bigint): Promise<bigint> => {
      await setStorageAt(await manager.getAddress(), slot, word - 1n + lastGroupId);
      // Denied: every word is read.
      expect(await manager.canUseWalletInAction(number("any"), cid(7), ALICE_PKP)).to.equal(false);
      return manager.canUseWalletInAction.estimateGas(number("any"), cid(7), ALICE_PKP);
    };
    const few = await gas(223n);
    expect(few).to.be.lessThan(46_000n);
    for (const groups of [10_000n, 100_000n, 1_000_000n])
      expect((await gas(groups)) - few, `${groups} groups ever`).to.be.lessThan(2_500n * (groups / 224n));
  });

  /** The slot of the account's newest group id: the one that a new group raises by one. */
  async function lastGroupSlot(world: World): Promise<string> {
    const address = await world.manager.getAddress();
    const record = await accountSlot(world, ALICE_ID);
    const slots = Array.from({ length: 60 }, (_, i) => ethers.toBeHex(BigInt(record) + BigInt(i), 32));
    const read = () => Promise.all(slots.map((slot) => ethers.provider.getStorage(address, slot)));
    const before = await read();
    const snapshot = await takeSnapshot();
    await world.manager.connect(world.cast.payer).addGroup(ALICE_ID, "", "", [], []);
    const after = await read();
    await snapshot.restore();
    const changed = slots.filter((_, i) => before[i] !== after[i]);
    expect(changed).to.have.length(1);
    return must(changed[0]);
  }

  it("an account with hundreds of groups, actions, PKPs and keys pays what a small one pays", async () => {
    const stage = await staged(twoAccounts);
    const { manager, cast } = stage.world;
    const payer = manager.connect(cast.payer);
    // A second of each first, so that both accounts are in a steady state.
    const grow = async (from: number, to: number) => {
      for (let i = from; i < to; i++) {
        await payer.registerWalletDerivation(ALICE_ID, walletOf(`w${i}`), pathFor(ALICE_ID, `w${i}`), "", "");
        await payer.addAction(ALICE_ID, "", "", cid(i));
        await payer.setUsageApiKey(...executeKey(ALICE_ID, number(`k${i}`), [1n]));
        if (i < GROUPS) await payer.addGroup(ALICE_ID, "", "", [cid(1)], [ALICE_PKP]);
      }
    };
    await grow(2, 4);
    const small = await prices(stage);
    await grow(4, OTHERS);
    const large = await prices(stage);
    for (const name of Object.keys(small)) {
      const more = must(large[name]) - must(small[name]);
      // Only bytes of calldata and counters differ.
      expect(more, `${name}: ${small[name]} → ${large[name]}`).to.be.lessThan(200n);
    }
  }).timeout(60_000);
});
