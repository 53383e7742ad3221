import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, fund, openCredits, reservationsOf, type CreditsBench } from "../../support/credits";
import { endWrite } from "../../support/endedWrite";
import { expectRefusal } from "../../support/refusal";
import { Audit } from "../../../relayer/credits/audit";
import type { Reservations } from "../../../relayer/credits/reservations";

const submission = (): string => randomBytes(16).toString("hex");

describe("reservations of a dead instance", () => {
  let living: CreditsBench;
  let dying: CreditsBench;
  let sweeper: Reservations;
  beforeEach(async () => {
    living = await openCredits();
    dying = await openCredits();
    const { db, instance } = living;
    sweeper = reservationsOf(db, instance.id);
  });
  afterEach(async () => {
    await expectBalancedBooks(living.db);
    await living.stop();
    await dying.stop();
  });

  /** The instance's last renewal was this long ago, by the database's clock. */
  const silentFor = (seconds: number): Promise<unknown> =>
    living.db
      .updateTable("instances")
      .set({ renewed_at: sql`now() - ${seconds} * interval '1 second'` })
      .where("id", "=", dying.instance.id)
      .execute();

  const funded = async (): Promise<ReturnType<typeof freshAccount>> => {
    const accountId = freshAccount();
    await fund(living.db, accountId, 100);
    return accountId;
  };

  it("are kept while its lease is valid, and released once it has been silent for 15 seconds", async () => {
    const accountId = await funded();
    await dying.credits.reservations.reserveRun({ accountId, limitMs: 10_000 });
    await silentFor(14);
    await sweeper.sweep();
    expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 10 });
    await silentFor(16);
    await sweeper.sweep();
    expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 0 });
  });

  it("are released at once when it has shut down", async () => {
    const accountId = await funded();
    await dying.credits.reservations.reserveRun({ accountId, limitMs: 10_000 });
    await dying.instance.stop();
    await sweeper.sweep();
    expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 0 });
  });

  it("are taken over once, also by concurrent sweeps", async () => {
    const accountId = await funded();
    for (let run = 0; run < 5; run++) await dying.credits.reservations.reserveRun({ accountId, limitMs: 2000 });
    await silentFor(60);
    const counts = await Promise.all([sweeper.sweep(), sweeper.sweep(), sweeper.sweep()]);
    expect(counts.reduce((sum, count) => sum + count, 0)).to.equal(5);
    expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 0 });
  });

  it("wait for the write's outcome once its submission is stored", async () => {
    const accountId = await funded();
    const submissionId = submission();
    await dying.credits.reservations.reserveWrite({ accountId, submissionId, cents: 4 });
    await living.db.transaction().execute((trx) => dying.credits.reservations.bindWrites([submissionId], trx));
    await silentFor(3600);
    await sweeper.sweep();
    expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 4 });
    expect(await endWrite(living, submissionId, true)).to.equal(4);
  });

  it("stop a write whose credit was released meanwhile: it is not stored, nothing is sent", async () => {
    const accountId = await funded();
    const submissionId = submission();
    await dying.credits.reservations.reserveWrite({ accountId, submissionId, cents: 4 });
    await silentFor(60);
    await sweeper.sweep();
    const binding = living.db
      .transaction()
      .execute((trx) => dying.credits.reservations.bindWrites([submissionId], trx));
    expect((await expectRefusal(binding, "database_unavailable")).retryable).to.equal(true);
  });

  it(
    "are charged anyway when the run continued and ended: once, with its record, also " +
      "when the credit is spent by then",
    async () => {
      const accountId = await funded();
      const { reservationId } = await dying.credits.reservations.reserveRun({ accountId, limitMs: 10_000 });
      await silentFor(60);
      await sweeper.sweep();
      expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 0 });
      const { reservationId: other } = await living.credits.reservations.reserveRun({ accountId, limitMs: 100_000 });
      expect(await living.credits.reservations.settleRun(other, 99_000)).to.equal(99);
      expect(await dying.credits.reservations.settleRun(reservationId, 5_000)).to.equal(5);
      expect(await dying.credits.reservations.settleRun(reservationId, 5_000), "told again").to.equal(5);
      expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: -4, reservedCents: 0 });
      const { entries } = await living.credits.accounts.history(accountId, { number: 0, size: 10 });
      expect(
        entries
          .filter(({ reference }) => reference === reservationId)
          .map(({ kind, amountCents }) => [kind, amountCents]),
      ).to.deep.equal([["run", -5]]);
      const found: unknown[] = [];
      const audit = new Audit({
        db: living.db,
        onWrong: (one) => one.accountId === accountId && found.push(one),
      });
      while (audit.figures.finishedAt === undefined) await audit.turn();
      expect(found).to.deep.equal([]);
    },
  );

  it("stay free where the guest was never started, or the service was at fault", async () => {
    const accountId = await funded();
    const { reservationId } = await dying.credits.reservations.reserveRun({ accountId, limitMs: 10_000 });
    await silentFor(60);
    await sweeper.sweep();
    await dying.credits.reservations.releaseRun(reservationId);
    expect(
      await dying.credits.reservations.settleRun(randomBytes(16).toString("hex"), 5_000),
      "never reserved",
    ).to.equal(0);
    expect(await living.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 100, reservedCents: 0 });
  });

  it("are searched in the background once an instance starts, and its own lease is renewed", async () => {
    const accountId = await funded();
    await dying.credits.reservations.reserveRun({ accountId, limitMs: 10_000 });
    await silentFor(60);
    living.credits.start();
    for (let turn = 0; turn < 100 && (await living.credits.accounts.balance(accountId)).reservedCents > 0; turn++)
      await new Promise((done) => setTimeout(done, 20));
    expect((await living.credits.accounts.balance(accountId)).reservedCents).to.equal(0);
    expect(living.errors).to.deep.equal([]);
  });
});
