import { expect } from "chai";
import { sql } from "kysely";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, openCredits, type CreditsBench } from "../../support/credits";
import { grantSignupCredit } from "../../../relayer/credits/signup";

describe("the signup credit", () => {
  let bench: CreditsBench;
  afterEach(async () => {
    await expectBalancedBooks(bench.db);
    await bench.stop();
  });

  it("is granted once per account, also concurrently", async () => {
    bench = await openCredits({ signup: { cents: 2000, dailyCapCents: undefined, everyAccount: false } });
    const accountId = freshAccount();
    const granted = await Promise.all(
      Array.from({ length: 20 }, () => bench.credits.accounts.grantSignupCredit(accountId)),
    );
    expect(granted.filter((cents) => cents === 2000)).to.have.length(1);
    expect(granted.filter((cents) => cents === 0)).to.have.length(19);
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 2000, reservedCents: 0 });
  });

  it("is granted on first use where every account gets it, also when that is a run", async () => {
    bench = await openCredits({ signup: { cents: 50, dailyCapCents: undefined, everyAccount: true } });
    const accountId = freshAccount();
    const { limitMs } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 60_000 });
    expect(limitMs).to.equal(50_000);
    const another = await openCredits({ signup: { cents: 50, dailyCapCents: undefined, everyAccount: true } });
    expect((await another.credits.accounts.balance(accountId)).balanceCents).to.equal(50);
    await another.stop();
  });

  it("is not granted on first use in production: an account created on chain gets nothing", async () => {
    bench = await openCredits({ signup: { cents: 50, dailyCapCents: 1_000_000, everyAccount: false } });
    expect((await bench.credits.accounts.balance(freshAccount())).balanceCents).to.equal(0);
  });

  it("stops at the daily cap over all accounts, also concurrently", async () => {
    bench = await openCredits();
    const today = await bench.db
      .selectFrom("ledger_entries")
      .select(({ fn }) => fn.sum<string>("amount_cents").as("cents"))
      .where("kind", "=", "signup_credit")
      .where(sql<boolean>`created_at >= date_trunc('day', now() at time zone 'UTC') at time zone 'UTC'`)
      .executeTakeFirst();
    const dailyCapCents = Number(today?.cents ?? 0) + 350;
    const grants = await Promise.all(
      Array.from({ length: 10 }, () =>
        grantSignupCredit(bench.db, { cents: 100, dailyCapCents, everyAccount: false }, freshAccount()),
      ),
    );
    expect(grants.filter((cents) => cents === 100)).to.have.length(3);
  });
});
