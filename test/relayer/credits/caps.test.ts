import { expect } from "chai";
import type { AccountId, KeyId } from "../../../protocol/ids";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, freshKey, fund, openCredits, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

describe("a usage key's spending cap", () => {
  let bench: CreditsBench;
  let accountId: AccountId;
  let keyId: KeyId;
  before(async () => {
    bench = await openCredits();
  });
  after(() => bench.stop());
  beforeEach(async () => {
    accountId = freshAccount();
    keyId = freshKey();
    await fund(bench.db, accountId, 1000);
  });
  afterEach(() => expectBalancedBooks(bench.db));

  const spent = async (): Promise<number | undefined> => (await bench.credits.accounts.spentCents([keyId])).get(keyId);
  const run = async (capCents: number, seconds: number): Promise<number> => {
    const { reservationId } = await bench.credits.reservations.reserveRun({
      accountId,
      keyId,
      capCents,
      limitMs: seconds * 1000,
    });
    return bench.credits.reservations.settleRun(reservationId, seconds * 1000);
  };

  it("lowers a run's limit to the rest of the cap, and refuses when nothing is left", async () => {
    expect(await run(10, 7)).to.equal(7);
    const second = await bench.credits.reservations.reserveRun({ accountId, keyId, capCents: 10, limitMs: 60_000 });
    expect(second.limitMs).to.equal(3000);
    const error = await expectRefusal(
      bench.credits.reservations.reserveRun({ accountId, keyId, capCents: 10, limitMs: 60_000 }),
      "key_cap_spent",
    );
    expect(error.facts).to.deep.equal({ required_cents: 1, cap_cents: 10, spent_cents: 10 });
    expect(await bench.credits.reservations.settleRun(second.reservationId, 1)).to.equal(1);
    expect(await spent()).to.equal(8);
  });

  it("counts writes and runs together", async () => {
    await run(10, 9);
    await bench.credits.reservations.reserveWrite({
      accountId,
      keyId,
      capCents: 10,
      submissionId: freshKey(),
      cents: 1,
    });
    await expectRefusal(
      bench.credits.reservations.reserveWrite({ accountId, keyId, capCents: 10, submissionId: freshKey(), cents: 1 }),
      "key_cap_spent",
    );
  });

  it("belongs to the key: spending is never reset, and a raised cap adds the difference", async () => {
    await run(5, 5);
    await expectRefusal(
      bench.credits.reservations.reserveRun({ accountId, keyId, capCents: 5, limitMs: 1000 }),
      "key_cap_spent",
    );
    const raised = await bench.credits.reservations.reserveRun({ accountId, keyId, capCents: 8, limitMs: 60_000 });
    expect(raised.limitMs).to.equal(3000);
    await bench.credits.reservations.releaseRun(raised.reservationId);
    await expectRefusal(
      bench.credits.reservations.reserveRun({ accountId, keyId, capCents: 2, limitMs: 1000 }),
      "key_cap_spent",
    );
  });

  it("of zero means no cap; spending is counted anyway", async () => {
    await run(0, 30);
    await run(0, 30);
    expect(await spent()).to.equal(60);
  });

  it("does not replace credit: an account without credit is told so, not about the cap", async () => {
    const poor = freshAccount();
    await expectRefusal(
      bench.credits.reservations.reserveRun({ accountId: poor, keyId, capCents: 10, limitMs: 1000 }),
      "insufficient_credit",
    );
  });

  it("of one key does not affect other keys", async () => {
    await run(1, 1);
    const other = freshKey();
    const { reservationId } = await bench.credits.reservations.reserveRun({
      accountId,
      keyId: other,
      capCents: 1,
      limitMs: 1000,
    });
    await bench.credits.reservations.settleRun(reservationId, 1);
    expect(await bench.credits.accounts.spentCents([keyId, other, freshKey()])).to.satisfy(
      (all: ReadonlyMap<KeyId, number>) => [...all.values()].join() === "1,1,0",
    );
  });

  it("is not exceeded by concurrent requests", async () => {
    const tries = await Promise.allSettled(
      Array.from({ length: 60 }, () =>
        bench.credits.reservations.reserveRun({ accountId, keyId, capCents: 25, limitMs: 1000 }),
      ),
    );
    const granted = tries.filter((one) => one.status === "fulfilled");
    expect(granted).to.have.length(25);
    await Promise.all(granted.map((one) => bench.credits.reservations.settleRun(one.value.reservationId, 10)));
    expect(await spent()).to.equal(25);
  });
});
