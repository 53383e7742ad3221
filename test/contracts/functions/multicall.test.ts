import { expect } from "chai";
import { ALICE_ID, ALICE_PKP } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("multicall", {
  "several calls: all are executed, their results returned in order": async ({ world }) => {
    const { manager, cast } = world;
    const call = manager.interface.encodeFunctionData("addGroup", [ALICE_ID, "", "", [cid(1)], [ALICE_PKP]]);
    const answers = await manager.connect(cast.payer).multicall.staticCall([call, call]);
    expect(answers.map((answer) => BigInt(answer))).to.deep.equal([2n, 3n]);
    await manager.connect(cast.payer).multicall([call, call]);
    expect((await manager.getAccount(ALICE_ID)).groupCount).to.equal(3n);
  },
  "one of them fails: none is executed, and the error is its own": async ({ world }) => {
    const { manager, cast } = world;
    const good = manager.interface.encodeFunctionData("addGroup", [ALICE_ID, "", "", [], []]);
    const bad = manager.interface.encodeFunctionData("removeGroup", [ALICE_ID, 9]);
    await expect(manager.connect(cast.payer).multicall([good, bad]))
      .to.be.revertedWithCustomError(manager, "UnknownGroup")
      .withArgs(9);
    expect((await manager.getAccount(ALICE_ID)).lastGroupId).to.equal(1n);
  },
});
