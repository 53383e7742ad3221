import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, freshKey, fund, openCredits, type CreditsBench } from "../../support/credits";
import { endWrite } from "../../support/endedWrite";

describe("concurrent spending", () => {
  let bench: CreditsBench;
  let peer: CreditsBench;
  before(async () => {
    bench = await openCredits();
    peer = await openCredits();
  });
  after(async () => {
    await bench.stop();
    await peer.stop();
  });
  afterEach(() => expectBalancedBooks(bench.db));

  it("drains the last cents to exactly zero, forty runs in parallel", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 17);
    const runs = await Promise.allSettled(
      Array.from({ length: 40 }, async (_, index) => {
        const { credits } = index % 2 === 0 ? bench : peer;
        const { reservationId } = await credits.reservations.reserveRun({ accountId, limitMs: 1000 });
        return credits.reservations.settleRun(reservationId, 999);
      }),
    );
    const paid = runs.filter((run) => run.status === "fulfilled").map((run) => run.value);
    const refused = runs
      .filter((run) => run.status === "rejected")
      .map((run) => (run.reason as { code?: string }).code);
    expect(paid.reduce((sum, cents) => sum + cents, 0)).to.equal(17);
    expect(new Set(refused)).to.deep.equal(new Set(["insufficient_credit"]));
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 0, reservedCents: 0 });
  });

  it("loses no update and never goes below zero, two hundred of one account", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 1500);
    const keys = Array.from({ length: 5 }, freshKey);
    const spend = async (index: number): Promise<number> => {
      const { credits } = index % 2 === 0 ? bench : peer;
      const keyId = keys[index % keys.length];
      if (index % 3 === 0) {
        const submissionId = randomBytes(16).toString("hex");
        await credits.reservations.reserveWrite({ accountId, keyId, submissionId, cents: 1 });
        return endWrite({ db: bench.db, credits }, submissionId, true);
      }
      const { reservationId } = await credits.reservations.reserveRun({ accountId, keyId, limitMs: 30_000 });
      return credits.reservations.settleRun(reservationId, (index % 9) * 1000);
    };
    const outcomes = await Promise.allSettled(Array.from({ length: 200 }, (_, index) => spend(index)));
    const spent = outcomes.reduce((sum, one) => sum + (one.status === "fulfilled" ? one.value : 0), 0);
    const { balanceCents, reservedCents } = await bench.credits.accounts.balance(accountId);
    expect(reservedCents).to.equal(0);
    expect(balanceCents).to.equal(1500 - spent);
    expect(balanceCents).to.be.at.least(0);
    const byKey = await bench.credits.accounts.spentCents(keys);
    expect([...byKey.values()].reduce((sum, cents) => sum + cents, 0)).to.equal(spent);
  });
});
