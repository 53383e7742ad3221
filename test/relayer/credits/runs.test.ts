import { expect } from "chai";
import type { AccountId } from "../../../protocol/ids";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, fund, openCredits, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

describe("credit for a run", () => {
  let bench: CreditsBench;
  before(async () => {
    bench = await openCredits({ prices: { managementWriteCents: 1, runSecondCents: 3 } });
  });
  after(() => bench.stop());
  afterEach(() => expectBalancedBooks(bench.db));

  const funded = async (cents: number): Promise<AccountId> => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, cents);
    return accountId;
  };

  it("is reserved for the whole limit and settled by started seconds", async () => {
    for (const [durationMs, cost] of [
      [0, 3],
      [1, 3],
      [1000, 3],
      [1001, 6],
      [59_999, 180],
      [999_999, 180],
    ] as const) {
      const accountId = await funded(1000);
      const { reservationId, limitMs } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 60_000 });
      expect(limitMs).to.equal(60_000);
      expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 1000, reservedCents: 180 });
      expect(await bench.credits.reservations.settleRun(reservationId, durationMs), `${durationMs} ms`).to.equal(cost);
      expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({
        balanceCents: 1000 - cost,
        reservedCents: 0,
      });
    }
  });

  it("lowers the limit to the seconds that the credit pays for", async () => {
    const accountId = await funded(11);
    const { reservationId, limitMs } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 60_000 });
    expect(limitMs).to.equal(3000);
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 11, reservedCents: 9 });
    expect(await bench.credits.reservations.settleRun(reservationId, 60_000)).to.equal(9);
  });

  it("includes other reservations: the limit is lowered to the free credit", async () => {
    const accountId = await funded(100);
    await bench.credits.reservations.reserveRun({ accountId, limitMs: 30_000 });
    const { limitMs } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 30_000 });
    expect(limitMs).to.equal(3000);
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 99 });
  });

  it("never raises the requested limit", async () => {
    const { limitMs } = await bench.credits.reservations.reserveRun({ accountId: await funded(1000), limitMs: 1500 });
    expect(limitMs).to.equal(1500);
  });

  it("is refused below one second's price, with both amounts", async () => {
    const accountId = await funded(2);
    const error = await expectRefusal(
      bench.credits.reservations.reserveRun({ accountId, limitMs: 60_000 }),
      "insufficient_credit",
    );
    expect(error.facts).to.include({ required_cents: 3, balance_cents: 2 });
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 2, reservedCents: 0 });
  });

  it("is released when the guest was never started", async () => {
    const accountId = await funded(100);
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 5000 });
    await bench.credits.reservations.releaseRun(reservationId);
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 0 });
  });

  it("is settled once: a second end of the same run changes nothing and returns the first cost", async () => {
    const accountId = await funded(100);
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 5000 });
    expect(await bench.credits.reservations.settleRun(reservationId, 500)).to.equal(3);
    expect(await bench.credits.reservations.settleRun(reservationId, 4500)).to.equal(3);
    await bench.credits.reservations.releaseRun(reservationId);
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 97, reservedCents: 0 });
  });

  it("costs nothing where runs are free, even without credit", async () => {
    const free = await openCredits({ prices: { managementWriteCents: 1, runSecondCents: 0 } });
    const { reservationId, limitMs } = await free.credits.reservations.reserveRun({
      accountId: freshAccount(),
      limitMs: 5000,
    });
    expect(limitMs).to.equal(5000);
    expect(await free.credits.reservations.settleRun(reservationId, 4000)).to.equal(0);
    await free.stop();
  });
});
