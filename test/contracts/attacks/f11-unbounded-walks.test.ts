// F11 and invariant 11: a write or decision whose gas grows with the account until it no longer fits into a block.
import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, executeKey, twoAccounts } from "../support/stages";
import { cid, number, pathFor, walletOf, staged } from "../support/world";
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

describe("F11 the gas of writes and decisions does not grow with the account", () => {
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
