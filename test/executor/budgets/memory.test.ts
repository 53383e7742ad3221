/** Budgets that a keyholder has in memory: bounded, and fair between accounts. A dropped one has to lease again. */
import { expect } from "chai";
import { Budgets } from "../../../executor/budgets/budgets";
import type { BudgetChain, Carrier } from "../../../executor/budgets/counter";
import type { LeaseTerms } from "../../../protocol/budgets";
import type { AccountId } from "../../../protocol/ids";
import { BUDGET, PAYER } from "../../support/budgetWorld";

const HOUR = 3_600;
const LIMIT = 800n;
const MOST = 20;

/** A chain that carries out every lease at once. */
class ObligingChain implements BudgetChain, Carrier {
  readonly patienceMs = 60_000;
  seconds = 1_000 * HOUR;
  readonly sent: LeaseTerms[] = [];

  time = async (): Promise<bigint> => BigInt(this.seconds);
  used = async () => ({ used: 0n, timestamp: BigInt(this.seconds), blockNumber: 1n });
  send = async (terms: LeaseTerms): Promise<void> => void this.sent.push(terms);
  leases: BudgetChain["leases"] = async (_budget, _index, ids) => ({
    head: 1n,
    leases: this.sent
      .filter(({ id }) => ids.includes(id))
      .map(({ id, amount }) => ({ id, amount, used: amount, isFinal: true })),
  });
}

describe("budgets in memory", () => {
  const accountOf = (number: number): AccountId => `0x${String(number).padStart(64, "0")}` as AccountId;
  function keyholder(most = MOST) {
    const chain = new ObligingChain();
    const budgets = new Budgets(chain, chain, most, () => chain.seconds);
    /** Leases that were needed. */
    const spend = async (account: number, name = "usdc", amount = 1n): Promise<number> => {
      const before = chain.sent.length;
      const budget = { ...BUDGET, account: accountOf(account), name };
      await budgets.spend(budget, PAYER, { amount, limit: LIMIT });
      return chain.sent.length - before;
    };
    return { chain, spend };
  }

  it("of an account with many give way to those of others", async () => {
    const { spend } = keyholder();
    for (let account = 1; account <= 10; account++) expect(await spend(account)).to.equal(1);
    for (let name = 0; name < 100; name++) await spend(0, `n${name}`);
    for (let account = 1; account <= 10; account++) expect(await spend(account), `${account}`).to.equal(0);
    expect(await spend(0, "n99")).to.equal(0);
    expect(await spend(0, "n0")).to.equal(1);
  });

  it("with leases are not pushed out by names that only were asked about", async () => {
    const { spend } = keyholder(1_000);
    expect(await spend(0)).to.equal(1);
    for (let name = 0; name < 600; name++) await spend(0, `free ${name}`, 0n);
    expect(await spend(0)).to.equal(0);
  });

  it("of windows that are over give way first", async () => {
    const { chain, spend } = keyholder();
    for (let account = 0; account < MOST; account++) await spend(account);
    chain.seconds += HOUR;
    for (const name of ["a", "b", "c"]) await spend(100, name);
    for (let account = 200; account < 215; account++) await spend(account);
    for (const name of ["a", "b", "c"]) expect(await spend(100, name)).to.equal(0);
  });

  it("of the account that has not spent for longest give way, where all have as many", async () => {
    const { spend } = keyholder();
    for (let account = 0; account < MOST; account++) await spend(account);
    expect(await spend(0)).to.equal(0);
    await spend(100);
    expect(await spend(0)).to.equal(0);
    expect(await spend(1)).to.equal(1);
  });

  it("are at most 256 of one account", async () => {
    const chain = new ObligingChain();
    const budgets = new Budgets(chain, chain);
    const names = Array.from({ length: 257 }, (_, at) => `n${at}`);
    for (const name of [...names, "n1", "n0"])
      await budgets.spend({ ...BUDGET, name }, PAYER, { amount: 1n, limit: LIMIT });
    expect(chain.sent.length).to.equal(258);
  });
});
