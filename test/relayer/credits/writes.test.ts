import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, fund, openCredits, type CreditsBench } from "../../support/credits";
import { endWrite } from "../../support/endedWrite";
import { expectRefusal } from "../../support/refusal";
import type { AccountId } from "../../../protocol/ids";

const submission = (): string => randomBytes(16).toString("hex");

describe("credit for a management write", () => {
  let bench: CreditsBench;
  let accountId: AccountId;
  before(async () => {
    bench = await openCredits();
  });
  after(() => bench.stop());
  beforeEach(async () => {
    accountId = freshAccount();
    await fund(bench.db, accountId, 10);
  });
  afterEach(() => expectBalancedBooks(bench.db));

  const inTransaction = <T>(work: Parameters<ReturnType<typeof bench.db.transaction>["execute"]>[0]): Promise<T> =>
    bench.db.transaction().execute(work) as Promise<T>;
  const balance = (): Promise<{ balanceCents: number; reservedCents: number }> =>
    bench.credits.accounts.balance(accountId);

  it("is held by the submission, and charged when the write is mined", async () => {
    const submissionId = submission();
    await bench.credits.reservations.reserveWrite({ accountId, submissionId, cents: 3 });
    expect(await balance()).to.deep.equal({ balanceCents: 10, reservedCents: 3 });
    await inTransaction((trx) => bench.credits.reservations.bindWrites([submissionId], trx));
    expect(await endWrite(bench, submissionId, true)).to.equal(3);
    expect(await balance()).to.deep.equal({ balanceCents: 7, reservedCents: 0 });
  });

  it("is released when the write failed or expired", async () => {
    const submissionId = submission();
    await bench.credits.reservations.reserveWrite({ accountId, submissionId, cents: 3 });
    await inTransaction((trx) => bench.credits.reservations.bindWrites([submissionId], trx));
    expect(await endWrite(bench, submissionId, false)).to.equal(0);
    expect(await balance()).to.deep.equal({ balanceCents: 10, reservedCents: 0 });
  });

  it("is released when the write failed before it became a submission", async () => {
    const submissionId = submission();
    await bench.credits.reservations.reserveWrite({ accountId, submissionId, cents: 3 });
    await bench.credits.reservations.abandonWrite(submissionId);
    expect(await balance()).to.deep.equal({ balanceCents: 10, reservedCents: 0 });
  });

  it(
    "of a whole batch is settled at once: charged writes are deducted, the others released, and a repeated " +
      "outcome changes nothing",
    async () => {
      const other = freshAccount();
      await fund(bench.db, other, 5);
      const [mine, failed, others, free] = [submission(), submission(), submission(), submission()];
      await bench.credits.reservations.reserveWrite({ accountId, submissionId: mine, cents: 3 });
      await bench.credits.reservations.reserveWrite({ accountId, submissionId: failed, cents: 2 });
      await bench.credits.reservations.reserveWrite({ accountId: other, submissionId: others, cents: 4 });
      await inTransaction((trx) => bench.credits.reservations.bindWrites([mine, failed, others, free], trx));
      const ends = [mine, others, free]
        .map((submissionId) => ({ submissionId, charged: true }))
        .concat({ submissionId: failed, charged: false });
      for (let time = 0; time < 2; time++)
        await inTransaction((trx) => bench.credits.reservations.endWrites(ends, trx));
      expect(await balance()).to.deep.equal({ balanceCents: 7, reservedCents: 0 });
      expect(await bench.credits.accounts.balance(other)).to.deep.equal({ balanceCents: 1, reservedCents: 0 });
    },
  );

  it("is settled once, whichever outcome comes first and however often", async () => {
    const submissionId = submission();
    await bench.credits.reservations.reserveWrite({ accountId, submissionId, cents: 3 });
    const charged: number[] = [];
    for (const isMined of [true, true, true, false]) charged.push(await endWrite(bench, submissionId, isMined));
    expect(charged).to.deep.equal([3, 3, 3, 3]);
    expect(await balance()).to.deep.equal({ balanceCents: 7, reservedCents: 0 });
  });

  it("is unchanged when the transaction that writes the outcome is rolled back", async () => {
    const submissionId = submission();
    await bench.credits.reservations.reserveWrite({ accountId, submissionId, cents: 3 });
    const failing = bench.db.transaction().execute(async (trx) => {
      await bench.credits.reservations.endWrites([{ submissionId, charged: true }], trx);
      throw new Error("the outcome could not be written");
    });
    await failing.catch(() => undefined);
    expect(await balance()).to.deep.equal({ balanceCents: 10, reservedCents: 3 });
  });

  it("is refused with both amounts when there is too little, and nothing is held", async () => {
    const error = await expectRefusal(
      bench.credits.reservations.reserveWrite({ accountId, submissionId: submission(), cents: 11 }),
      "insufficient_credit",
    );
    expect(error.facts).to.include({ required_cents: 11, balance_cents: 10, reserved_cents: 0 });
    expect(await balance()).to.deep.equal({ balanceCents: 10, reservedCents: 0 });
  });

  it("includes other reservations", async () => {
    await bench.credits.reservations.reserveWrite({ accountId, submissionId: submission(), cents: 8 });
    const error = await expectRefusal(
      bench.credits.reservations.reserveWrite({ accountId, submissionId: submission(), cents: 3 }),
      "insufficient_credit",
    );
    expect(error.facts).to.include({ required_cents: 3, balance_cents: 10, reserved_cents: 8 });
  });

  it("is not required for a revocation: it is executed without credit", async () => {
    const [paid, free] = [submission(), submission()];
    await bench.credits.reservations.reserveWrite({
      accountId,
      submissionId: paid,
      cents: 10,
      evenWithoutCredit: true,
    });
    await bench.credits.reservations.reserveWrite({
      accountId,
      submissionId: free,
      cents: 10,
      evenWithoutCredit: true,
    });
    await inTransaction((trx) => bench.credits.reservations.bindWrites([free], trx));
    expect(await endWrite(bench, paid, true)).to.equal(10);
    expect(await endWrite(bench, free, true)).to.equal(0);
    expect(await balance()).to.deep.equal({ balanceCents: 0, reservedCents: 0 });
  });

  it("of zero holds nothing", async () => {
    const poor = freshAccount();
    const submissionId = submission();
    await bench.credits.reservations.reserveWrite({ accountId: poor, submissionId, cents: 0 });
    expect(await endWrite(bench, submissionId, true)).to.equal(0);
  });
});
