/** The periodic ledger check: it covers every account, reports what does not add up, and changes nothing. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import { Audit, type Discrepancy } from "../../../relayer/credits/audit";
import { ensureAccount } from "../../../relayer/credits/accounts";
import { post } from "../../../relayer/credits/ledger";
import type { AccountId } from "../../../protocol/ids";
import type { Db } from "../../../relayer/store/database";
import { translateUnavailable } from "../../../relayer/store/unavailable";
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

  /** One more entry of the account. */
  async function postOne(accountId: AccountId, amountCents: number): Promise<void> {
    await ensureAccount(db, accountId);
    const reference = randomUUID();
    const posting = { accountId, kind: "correction", amountCents, reference, postingKey: reference } as const;
    await db.transaction().execute((trx) => post(trx, posting));
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
    for (let i = 0; i < 25; i++) await postOne(account, 3);
    found.length = 0;
    const audit = new Audit({ db, onWrong: (one) => found.push(one), entriesAtATime: 4 });
    const of = (one: Discrepancy): boolean => one.accountId === account;
    let turns = 0;
    for (; audit.figures.finishedAt === undefined; turns++) {
      await audit.turn();
      if (turns % 3 === 0) await postOne(account, 2);
    }
    expect(turns, "turns").to.be.above(6);
    expect(found.filter(of)).to.deep.equal([]);
    await sql`update credit_accounts set balance_cents = balance_cents + 1 where account_id = ${account}`.execute(db);
    await wholePass(audit);
    expect(found.filter(of).map(({ rule }) => rule)).to.deep.equal(["a balance is the sum of its entries"]);
  });

  it("goes on after an account with more entries than one statement may read, and reports it", async () => {
    const account = freshAccount();
    for (let i = 0; i < 9; i++) await postOne(account, 3);
    await sql`update credit_accounts set balance_cents = balance_cents + 1 where account_id = ${account}`.execute(db);
    found.length = 0;
    let cancelled = 0;
    const slow = db.withPlugin({
      transformQuery: ({ node }) => {
        const text = JSON.stringify(node);
        // All entries of the account, from the first one.
        if (text.includes("compared as") && text.includes(account) && text.includes('"value":0')) {
          cancelled += 1;
          throw translateUnavailable(Object.assign(new Error("canceling statement"), { code: "57014" }));
        }
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const audit = new Audit({ db: slow, onWrong: (one) => found.push(one), entriesAtATime: 4 });
    await wholePass(audit);
    expect(cancelled).to.equal(1);
    expect(found.map(({ accountId }) => accountId)).to.include(account);
  });
});
