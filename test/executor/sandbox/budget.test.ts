import { expect } from "chai";
import fc from "fast-check";
import { Budget, type Release } from "../../../executor/sandbox/budget";
import { SEED, count } from "../../support/counts";

const settled = (): Promise<unknown> => new Promise(setImmediate);

describe("a budget shared by all runs", () => {
  it("is never overdrawn, by no account beyond its share, and every waiting run is served", async () => {
    const step = fc.record({
      account: fc.constantFrom("a", "b", "c"),
      amount: fc.integer({ min: 1, max: 60 }),
      leaves: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const budget = new Budget({ total: 100, share: 50 });
        const held: { account: string; amount: number; release: Release }[] = [];
        let waiting = 0;
        const check = (): void => {
          expect(budget.taken)
            .to.equal(held.reduce((sum, { amount }) => sum + amount, 0))
            .and.at.most(100);
          for (const one of ["a", "b", "c"])
            expect(
              held.filter(({ account }) => account === one).reduce((sum, { amount }) => sum + amount, 0),
            ).to.be.at.most(50);
        };
        for (const { account, amount, leaves } of steps) {
          const leave = new AbortController();
          waiting++;
          const taken = budget
            .take(account, amount, leave.signal)
            .then((release) => void held.push({ account, amount: Math.min(amount, 50), release }));
          taken.catch(() => undefined).finally(() => waiting--);
          if (leaves) leave.abort();
          await settled();
          check();
          if (amount % 3 === 0) held.shift()?.release();
        }
        while (held.length > 0) {
          await settled();
          const [first] = held.splice(0, 1);
          first?.release();
          first?.release();
          await settled();
          check();
        }
        await settled();
        expect([waiting, budget.taken]).to.deep.equal([0, 0]);
      }),
      { seed: SEED, numRuns: count(60, 2_000) },
    );
  });

  it("serves accounts in turn", async () => {
    const budget = new Budget({ total: 10, share: 10 });
    const order: string[] = [];
    const first = await budget.take("a", 10);
    const wait = (account: string): Promise<void> =>
      budget.take(account, 10).then((release) => (order.push(account), release()));
    const all = [wait("a"), wait("a"), wait("b"), wait("a"), wait("c")];
    first();
    await Promise.all(all);
    expect(order).to.deep.equal(["a", "b", "c", "a", "a"]);
  });
});
