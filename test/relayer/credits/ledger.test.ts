import { expect } from "chai";
import { sql } from "kysely";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, fund, openCredits, type CreditsBench } from "../../support/credits";

describe("the ledger", () => {
  let bench: CreditsBench;
  before(async () => {
    bench = await openCredits();
  });
  after(() => bench.stop());
  afterEach(() => expectBalancedBooks(bench.db));

  it("is append-only: the database refuses to change or remove an entry", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    for (const statement of [
      "update ledger_entries set amount_cents = 1",
      "delete from ledger_entries",
      "truncate ledger_entries",
    ]) {
      const error = await sql
        .raw(statement)
        .execute(bench.db)
        .then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      expect(String(error), statement).to.include("append-only");
    }
  });

  it("refuses an entry of zero and an entry for an account without a row", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const entry = { account_id: accountId, contra: "revenue", kind: "run", reference: "x", key_id: null } as const;
    const insert = (values: object): Promise<unknown> =>
      bench.db
        .insertInto("ledger_entries")
        .values({ ...entry, amount_cents: -1, posting_key: `run:${freshAccount()}`, ...values })
        .execute();
    for (const wrong of [{ amount_cents: 0 }, { account_id: freshAccount() }]) {
      const failed = await insert(wrong).then(
        () => false,
        () => true,
      );
      expect(failed, JSON.stringify(wrong)).to.equal(true);
    }
  });

  it("has two legs per entry: the balances of all accounts equal the postings of the ledger's own books", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 7000 });
    const before = await books();
    await bench.credits.reservations.settleRun(reservationId, 7000);
    const after = await books();
    expect((after.get("revenue") ?? 0) - (before.get("revenue") ?? 0)).to.equal(7);
    expect((after.get(accountId) ?? 0) - (before.get(accountId) ?? 0)).to.equal(-7);
    expect([...after.values()].reduce((sum, cents) => sum + cents, 0)).to.equal(0);
  });

  const books = async (): Promise<Map<string, number>> => {
    const { rows } = await sql<{
      book: string;
      cents: number;
    }>`select book, sum(amount_cents)::int8 as cents from ledger_postings group by book`.execute(bench.db);
    return new Map(rows.map(({ book, cents }) => [book, cents]));
  };

  it("shows an unknown account as zero, with an empty history", async () => {
    const accountId = freshAccount();
    expect(await bench.credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: 0, reservedCents: 0 });
    expect(await bench.credits.accounts.history(accountId, { number: 0, size: 10 })).to.deep.equal({
      entries: [],
      total: 0,
    });
  });

  it("pages through the history, newest first, without gaps or repetitions", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    for (let run = 0; run < 12; run++) {
      const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 1000 });
      await bench.credits.reservations.settleRun(reservationId, 1);
    }
    const pages = await Promise.all(
      [0, 1, 2, 3].map((number) => bench.credits.accounts.history(accountId, { number, size: 5 })),
    );
    expect(pages.map(({ entries }) => entries.length)).to.deep.equal([5, 5, 3, 0]);
    expect(pages.map(({ total }) => total)).to.deep.equal([13, 13, 13, 13]);
    const ids = pages.flatMap(({ entries }) => entries.map(({ id }) => id));
    expect(ids).to.deep.equal([...new Set(ids)].sort((a, b) => b - a));
    const oldest = pages[2]?.entries.at(-1);
    expect(oldest).to.include({ kind: "signup_credit", amountCents: 100 });
    expect(pages[0]?.entries[0]).to.include({ kind: "run", amountCents: -1, keyId: undefined });
  });

  it("shows an account no entry of another", async () => {
    const [mine, theirs] = [freshAccount(), freshAccount()];
    await fund(bench.db, mine, 100);
    await fund(bench.db, theirs, 200);
    const { entries, total } = await bench.credits.accounts.history(mine, { number: 0, size: 10 });
    expect(total).to.equal(1);
    expect(entries[0]?.reference).to.equal(mine);
  });
});
