import { expect } from "chai";
import { RUN_LIMITS } from "../../../protocol/limits";
import { longestHold, opsBed } from "../../support/ops";
import { expectInTime, itInTime } from "../../support/inTime";

const attacker = opsBed("a1");
const neighbour = opsBed("b2");
const RUNS = 5;

describe("attack: thousands of large ops at once", function () {
  this.timeout(60_000);

  itInTime("block neither the event loop nor another account's signature, and stop with their run", async () => {
    const message = "m".repeat(60_000);
    const over = new AbortController();
    let served = 0;
    const attack = Array.from({ length: RUNS * RUN_LIMITS.keyOps }, async () => {
      const answer = await attacker.ops({
        name: "signMessage",
        args: JSON.stringify({ pkpId: attacker.pkpId, message }),
        over: over.signal,
      });
      if (answer.ok) served++;
    });
    let mostBefore = 0;
    const held = await longestHold(async () => {
      for (let i = 0; i < 20; i++) {
        const servedBefore = served;
        expect(await neighbour.codeOf("signMessage", { pkpId: neighbour.pkpId, message: "m" })).to.equal("allowed");
        mostBefore = Math.max(mostBefore, served - servedBefore);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    // A busy machine may not have reached the attacker's first op yet.
    for (let waited = 0; served === 0 && waited < 5_000; waited += 10)
      await new Promise((resolve) => setTimeout(resolve, 10));
    over.abort();
    await Promise.all(attack);
    expectInTime(held, 50, "the loop");
    expect(mostBefore, "ops of the attacker before one of the other account").to.be.at.most(2);
    expect(served, "some were served before the run was over, most were not").to.be.within(1, attack.length - 100);
  });
});
