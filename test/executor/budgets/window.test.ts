/** A window that ends while its leases are looked for: what is left of it is not spent in the next. */
import { expect } from "chai";
import { Counter, type BudgetChain } from "../../../executor/budgets/counter";
import type { LeaseTerms } from "../../../protocol/budgets";
import { WINDOW_SECONDS } from "../../../protocol/budgetTerms";
import { BUDGET, PAYER } from "../../support/budgetWorld";

const HOUR = WINDOW_SECONDS.hour;

describe("a window that ends", () => {
  it("while a spend looks for its leases gives that spend nothing more", async () => {
    let [seconds, passedMs] = [1_000n * HOUR + HOUR - 1n, 0];
    let onLook = (): void => undefined;
    const sent: { readonly index: bigint; readonly terms: LeaseTerms }[] = [];
    const usedIn = (index: bigint): bigint =>
      sent.filter((one) => one.index === index).reduce((sum, { terms }) => sum + terms.amount, 0n);
    const chain: BudgetChain = {
      patienceMs: 10_000,
      time: () => Promise.resolve(seconds),
      used: () => Promise.resolve({ used: usedIn(seconds / HOUR), timestamp: seconds, blockNumber: 1n }),
      leases: async (_budget, index, ids) => {
        onLook();
        const there = sent.filter(({ terms, index: of }) => of === index && ids.includes(terms.id));
        return {
          head: 1n,
          leases: there.map(({ terms: { id, amount } }) => ({ id, amount, used: usedIn(index), isFinal: false })),
        };
      },
    };
    const carrier = {
      send: (terms: LeaseTerms): Promise<void> => Promise.resolve(void sent.push({ index: seconds / HOUR, terms })),
    };
    const clock = { now: () => passedMs, sleep: (ms: number) => Promise.resolve(void (passedMs += ms)) };
    const counter = new Counter(BUDGET, chain, carrier, clock);

    await counter.spend(PAYER, { amount: 1n, limit: 1_000n });
    passedMs += 5_000;
    onLook = () => void (seconds += 10n);
    await counter.spend(PAYER, { amount: 1n, limit: 1_000n });
    expect(sent.map(({ index }) => index - 1_000n)).to.deep.equal([0n, 1n]);
  });
});
