/**
 * What a store forgets under running relayers: an asynchronous standby that is promoted lacks the last second, and a
 * restored store what came after the point restored.
 */
import { expect } from "chai";
import type { AccountId, KeyId } from "../../../protocol/ids";
import type { Db } from "../../../relayer/store/database";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, freshKey, fund, openCredits, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";
import { sharedStore } from "../../support/store";

describe("rows of accounts and keys that the store has lost", () => {
  let db: Db;
  let statements = 0;
  let bench: CreditsBench;
  let free: CreditsBench;
  let accountId: AccountId;
  let keyId: KeyId;
  before(async () => {
    db = (await sharedStore()).db.withPlugin({
      transformQuery: ({ node }) => {
        statements += 1;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    bench = await openCredits({ db });
    free = await openCredits({ db, prices: { managementWriteCents: 0, runSecondCents: 0 } });
  });
  after(async () => {
    await bench.stop();
    await free.stop();
  });
  beforeEach(async () => {
    accountId = freshAccount();
    keyId = freshKey();
    await fund(db, accountId, 1000);
  });
  afterEach(() => expectBalancedBooks(db));

  const hold = (capCents: number, seconds = 60) =>
    bench.credits.reservations.reserveRun({ accountId, keyId, capCents, limitMs: seconds * 1000 });
  const write = (rest: { readonly capCents?: number; readonly evenWithoutCredit?: boolean } = {}): Promise<boolean> =>
    bench.credits.reservations.reserveWrite({ accountId, keyId, submissionId: freshKey(), cents: 1, ...rest });
  /** A run that costs nothing, after which this relayer has seen account and key. */
  const seeBoth = async (): Promise<void> =>
    bench.credits.reservations.releaseRun((await hold(0, 1)).reservationId).then(() => undefined);
  const loseKey = async (): Promise<void> => {
    await db.deleteFrom("credit_reservations").where("key_id", "=", keyId).execute();
    await db.deleteFrom("key_spending").where("key_id", "=", keyId).execute();
  };
  /** One without entries: those cannot be deleted. */
  const loseAccount = async (): Promise<void> => {
    await db.deleteFrom("credit_accounts").where("account_id", "=", accountId).execute();
  };
  const used = async (): Promise<number | undefined> =>
    (
      await db
        .selectFrom("key_spending")
        .select(({ eb }) => eb("spent_cents", "+", eb.ref("reserved_cents")).as("used"))
        .where("key_id", "=", keyId)
        .executeTakeFirst()
    )?.used;
  const statementsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = statements;
    await work();
    return statements - before;
  };

  it("do not lift a key's cap: runs and writes are counted again, and refused beyond it", async () => {
    await seeBoth();
    await loseKey();
    expect((await hold(5)).limitMs).to.equal(5000);
    expect(await used()).to.equal(5);
    await expectRefusal(hold(5), "key_cap_spent");
    await expectRefusal(write({ capCents: 5 }), "key_cap_spent");
  });

  it("do not lift it for writes", async () => {
    await seeBoth();
    await loseKey();
    expect(await write({ capCents: 1 })).to.equal(true);
    expect(await used()).to.equal(1);
    await expectRefusal(write({ capCents: 1 }), "key_cap_spent");
  });

  it("of one key keep no other write of the same statement from its credit", async () => {
    await seeBoth();
    await loseKey();
    const other = freshAccount();
    await fund(db, other, 1);
    const ofOther = bench.credits.reservations.reserveWrite({ accountId: other, submissionId: freshKey(), cents: 1 });
    expect(await Promise.all([write({ capCents: 1 }), ofOther])).to.deep.equal([true, true]);
    expect(await used()).to.equal(1);
  });

  it("do not lift its limits of a day and a minute", async () => {
    await bench.credits.accounts.setKeyLimits(accountId, keyId, { centsPerDay: 10, runsPerMinute: 2, origins: [] });
    await seeBoth();
    await loseKey();
    expect((await hold(0)).limitMs).to.equal(10_000);
    await expectRefusal(write(), "key_day_spent");
    await expectRefusal(hold(0, 1), "rate_limited");
  });

  it("are made again for accounts, too", async () => {
    accountId = freshAccount();
    const run = () => free.credits.reservations.reserveRun({ accountId, keyId, limitMs: 1000 });
    await run();
    await loseKey();
    await loseAccount();
    await run();
    await loseKey();
    await loseAccount();
    await expectRefusal(hold(1), "insufficient_credit");
    await fund(db, accountId, 1);
    expect((await hold(5)).limitMs).to.equal(1000);
  });

  it("are looked for by no statement of their own: where none is missing, there are no more than before", async () => {
    await seeBoth();
    expect(await statementsOf(() => hold(0, 1)), "a run").to.equal(1);
    expect(await statementsOf(() => write()), "a write").to.equal(1);
    await hold(0, 2000);
    expect(await statementsOf(() => write({ evenWithoutCredit: true })), "a free write").to.equal(1);
    // Two that hold, with and without the key's limits, and three that say why not.
    expect(await statementsOf(() => expectRefusal(hold(0), "insufficient_credit")), "a refused run").to.equal(5);
    expect(await statementsOf(() => expectRefusal(write(), "insufficient_credit")), "a refused write").to.equal(4);
  });
});
