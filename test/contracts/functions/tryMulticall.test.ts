import { expect } from "chai";
import { ALICE_ID } from "../support/stages";
import type { World } from "../support/world";
import { describeFunction } from "../support/tree";

const CALL_GAS = 1_000_000;
const addGroup = ({ manager }: World, id: bigint) =>
  manager.interface.encodeFunctionData("addGroup", [id, "", "", [], []]);
const removeGroup = ({ manager }: World, groupId: number) =>
  manager.interface.encodeFunctionData("removeGroup", [ALICE_ID, groupId]);

describeFunction("tryMulticall", {
  "each alone: a failed call leaves only an event with its index and its error": async ({ world, bobId }) => {
    const { manager, cast } = world;
    const calls = [addGroup(world, ALICE_ID), removeGroup(world, 9), addGroup(world, bobId), addGroup(world, ALICE_ID)];
    expect([...(await manager.connect(cast.payer).tryMulticall.staticCall(calls))]).to.deep.equal([
      true,
      false,
      false,
      true,
    ]);
    const sent = await manager.connect(cast.payer).tryMulticall(calls, { gasLimit: 5_000_000 });
    const reason = (name: "UnknownGroup" | "AccountChainSecured", value: bigint) =>
      manager.interface.encodeErrorResult(name, [value]);
    await expect(sent).to.emit(manager, "CallFailed").withArgs(1, reason("UnknownGroup", 9n));
    await expect(sent).to.emit(manager, "CallFailed").withArgs(2, reason("AccountChainSecured", bobId));
    expect((await manager.getAccount(ALICE_ID)).lastGroupId).to.equal(3n);
    expect((await manager.getAccount(bobId)).lastGroupId).to.equal(1n);
  },
  "nothing to call: no effect": async ({ world }) => {
    await expect(world.manager.tryMulticall([])).not.to.be.reverted;
  },
  "bytes that are not a call fail alone, with an empty error": async ({ world }) => {
    const { manager, cast } = world;
    const calls = ["0x", "0x12", "0x12345678", addGroup(world, ALICE_ID).slice(0, 40)];
    const sent = await manager
      .connect(cast.payer)
      .tryMulticall([...calls, addGroup(world, ALICE_ID)], { gasLimit: 9_000_000 });
    for (const index of calls.keys()) await expect(sent).to.emit(manager, "CallFailed").withArgs(index, "0x");
    expect((await manager.getAccount(ALICE_ID)).lastGroupId).to.equal(2n);
  },
  "a batch inside: NestedBatch, and no effect": async ({ world }) => {
    const { manager, cast } = world;
    for (const name of ["multicall", "tryMulticall"] as const) {
      const inner = manager.interface.encodeFunctionData(name as "multicall", [[addGroup(world, ALICE_ID)]]);
      await expect(
        manager.connect(cast.payer).tryMulticall([addGroup(world, ALICE_ID), inner]),
      ).to.be.revertedWithCustomError(manager, "NestedBatch");
    }
    expect((await manager.getAccount(ALICE_ID)).lastGroupId).to.equal(1n);
  },
  "too little gas to guarantee each call its share: the whole transaction reverts, at every limit": async ({
    world,
  }) => {
    const { manager, cast } = world;
    const calls = [addGroup(world, ALICE_ID), addGroup(world, ALICE_ID)];
    const payer = manager.connect(cast.payer);
    const enough = Number(await payer.tryMulticall.estimateGas(calls));
    expect(enough).to.be.greaterThan(CALL_GAS);
    for (let gasLimit = 60_000; gasLimit < enough; gasLimit += Math.ceil((enough - 60_000) / 25)) {
      await expect(payer.tryMulticall(calls, { gasLimit })).to.be.reverted;
    }
    expect((await manager.getAccount(ALICE_ID)).lastGroupId).to.equal(1n);
    const limited = payer.tryMulticall.staticCall(calls, { gasLimit: CALL_GAS });
    await expect(limited).to.be.revertedWithCustomError(manager, "TooLittleGas");
    await expect(payer.tryMulticall(calls, { gasLimit: enough })).not.to.emit(manager, "CallFailed");
  },
  "a call that needs all of its share succeeds or reverts the whole transaction, whatever gas is sent": async ({
    world,
  }) => {
    const { manager, cast } = world;
    const payer = manager.connect(cast.payer);
    // Thirteen new actions, and one of them again and again, at about 700 gas each.
    const call = (again: number) =>
      manager.interface.encodeFunctionData("addGroup", [
        ALICE_ID,
        "",
        "",
        [...Array.from({ length: 13 }, (_, i) => BigInt(i + 1)), ...Array<bigint>(again).fill(1n)],
        [],
      ]);
    const outcome = async (again: number, gasLimit: number): Promise<boolean | undefined> => {
      try {
        return (await payer.tryMulticall.staticCall([call(again)], { gasLimit }))[0];
      } catch (error) {
        expect(world.errorName(error)).to.equal("TooLittleGas");
        return undefined;
      }
    };
    let [fits, tooMuch] = [0, 2_000];
    while (tooMuch - fits > 1) {
      const middle = Math.floor((fits + tooMuch) / 2);
      if ((await outcome(middle, 10_000_000)) === true) fits = middle;
      else tooMuch = middle;
    }
    expect(fits).to.be.greaterThan(0);
    const seen = new Set<boolean | undefined>();
    const intrinsic = 21_000 + 40 * fits; // most bytes of the repeated members are zeros
    for (let more = 0; more < 400_000; more += 4_000) seen.add(await outcome(fits, CALL_GAS + intrinsic + more));
    expect(seen).to.deep.equal(new Set([undefined, true]));
  },
  "a call that needs more than its share of gas fails alone, however much is sent": async ({ world }) => {
    const { manager, cast } = world;
    const members = Array.from({ length: 60 }, (_, i) => BigInt(i + 1));
    const heavy = manager.interface.encodeFunctionData("addGroup", [ALICE_ID, "", "", members, []]);
    const sent = await manager
      .connect(cast.payer)
      .tryMulticall([heavy, addGroup(world, ALICE_ID)], { gasLimit: 14_000_000 });
    await expect(sent).to.emit(manager, "CallFailed").withArgs(0, "0x");
    expect((await manager.getAccount(ALICE_ID)).lastGroupId).to.equal(2n);
  },
});
