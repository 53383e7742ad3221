/** The periodic ledger check: it covers every account, reports what does not add up, and changes nothing. */
import { expect } from "chai";
import { sql } from "kysely";
import { Audit, type Discrepancy } from "../../../relayer/credits/audit";
import type { Db } from "../../../relayer/store/database";
import type { Store } from "../../../relayer/store";
import { freshAccount, fund, openCredits } from "../../support/credits";
import { openTestStore } from "../../support/testStore";

describe("the periodic ledger check", () => {
  let store: Store;
  let db: Db;
  const found: Discrepancy[] = [];
  before(async function () {
    this.timeout(60_000);
    store = await openTestStore();
    ({ db } = store);
  });
  after(() => store.close());

  async function wholePass(audit: Audit): Promise<void> {
    const before = audit.figures.finishedAt;
    while (audit.figures.finishedAt === before) await audit.turn();
  }

  it("covers every account in batches, with the sums of all of them", async () => {
    await sql`insert into credit_accounts (account_id) select 'idle ' || n from generate_series(1, 1200) n`.execute(db);
    const bench = await openCredits({ db });
    const account = freshAccount();
    await fund(db, account, 50);
    await bench.credits.reservations.reserveRun({ accountId: account, limitMs: 3_000 });
    const audit = new Audit({ db, onWrong: (one) => found.push(one) });
    await wholePass(audit);
    expect(audit.figures).to.deep.include({ accounts: 1_201, balanceCents: 50, reservedCents: 3, wrong: 0 });
    await bench.stop();
  });

  it("reports an account whose balance, reservations or debt differ from its rows", async () => {
    const [balance, reserved] = [freshAccount(), freshAccount()];
    for (const account of [balance, reserved]) await fund(db, account, 10);
    await sql`update credit_accounts set balance_cents = 11 where account_id = ${balance}`.execute(db);
    await sql`update credit_accounts set reserved_cents = 1 where account_id = ${reserved}`.execute(db);
    found.length = 0;
    const audit = new Audit({ db, onWrong: (one) => found.push(one) });
    await audit.turn();
    const { finishedAt, turnedAt, wrong } = audit.figures;
    expect([finishedAt, wrong], "told before the pass has ended, which may take days").to.deep.equal([undefined, 2]);
    expect(turnedAt).to.be.an.instanceOf(Date);
    await wholePass(audit);
    expect(audit.figures.wrong).to.equal(2);
    expect(new Map(found.map(({ accountId, rule }) => [accountId, rule]))).to.deep.equal(
      new Map([
        [balance, "a balance is the sum of its entries"],
        [reserved, "what is reserved is what open reservations hold"],
      ]),
    );
  });

  it("reads an account with many entries in parts, while more are posted", async () => {
    const account = freshAccount();
    for (let i = 0; i < 25; i++) await fund(db, account, 3);
    found.length = 0;
    const audit = new Audit({ db, onWrong: (one) => found.push(one), entriesAtATime: 4 });
    const of = (one: Discrepancy): boolean => one.accountId === account;
    let turns = 0;
    for (; audit.figures.finishedAt === undefined; turns++) {
      await audit.turn();
      if (turns % 3 === 0) await fund(db, account, 2);
    }
    expect(found.filter(of)).to.deep.equal([]);
    await sql`update credit_accounts set balance_cents = balance_cents + 1 where account_id = ${account}`.execute(db);
    await wholePass(audit);
    expect(found.filter(of).map(({ rule }) => rule)).to.deep.equal(["a balance is the sum of its entries"]);
  });
});
