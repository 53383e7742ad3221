import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId, KeyId } from "../../../protocol/ids";
import type { KeyLimits, LimitedKey } from "../../../relayer/credits/types";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, freshKey, fund, openCredits, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

describe("a usage key's limits of a day and a minute", () => {
  let bench: CreditsBench;
  let peer: CreditsBench;
  let accountId: AccountId;
  let keyId: KeyId;
  before(async () => {
    bench = await openCredits();
    peer = await openCredits();
  });
  after(async () => {
    await bench.stop();
    await peer.stop();
  });
  beforeEach(async () => {
    accountId = freshAccount();
    keyId = freshKey();
    await fund(bench.db, accountId, 10_000);
  });
  afterEach(() => expectBalancedBooks(bench.db));

  const limit = (limits: Partial<KeyLimits>): Promise<void> =>
    bench.credits.accounts.setKeyLimits(accountId, keyId, { origins: [], ...limits });
  const hold = (seconds: number, by = bench, origin?: string) =>
    by.credits.reservations.reserveRun({ accountId, keyId, limitMs: seconds * 1000, origin });
  const run = async (seconds: number, by = bench): Promise<number> =>
    by.credits.reservations.settleRun((await hold(seconds, by)).reservationId, seconds * 1000);
  const write = (by = bench): Promise<boolean> =>
    by.credits.reservations.reserveWrite({ accountId, keyId, submissionId: freshKey(), cents: 1 });
  const listed = async (): Promise<LimitedKey | undefined> =>
    (await bench.credits.accounts.limitedKeys(accountId, { number: 0, size: 10 })).items[0];
  /** As if everything had happened that long ago. */
  const age = (column: "cents_by_hour" | "runs_by_tick", slots: number) =>
    sql`update key_limits set ${sql.ref(column)} = (
      select coalesce(jsonb_object_agg(key::int8 - ${slots}::int8, value), '{}') from jsonb_each(${sql.ref(column)})
    ) where key_id = ${keyId}`.execute(bench.db);

  it("lower a run's limit to the rest of the day, and refuse when nothing is left", async () => {
    await limit({ centsPerDay: 10 });
    expect(await run(7)).to.equal(7);
    const second = await hold(60);
    expect(second.limitMs).to.equal(3000);
    const error = await expectRefusal(hold(1), "key_day_spent");
    expect(error.facts).to.deep.equal({ required_cents: 1, limit_cents: 10, spent_cents: 10 });
    await expectRefusal(write(), "key_day_spent");
    expect(await bench.credits.reservations.settleRun(second.reservationId, 1)).to.equal(1);
    expect(await listed()).to.deep.include({ keyId, centsPerDay: 10, centsUsed: 8, runsUsed: 2 });
    await write();
    expect(await run(1)).to.equal(1);
    await expectRefusal(hold(1), "key_day_spent");
  });

  it("count every span of 24 hours, and forget what is older", async () => {
    await limit({ centsPerDay: 10 });
    await run(6);
    await age("cents_by_hour", 24);
    await run(4);
    await expectRefusal(hold(1), "key_day_spent");
    await age("cents_by_hour", 1);
    expect((await hold(60)).limitMs).to.equal(6000);
  });

  it("count runs of any minute, whatever becomes of them, and say when to come again", async () => {
    await limit({ runsPerMinute: 2 });
    await run(1);
    await bench.credits.reservations.releaseRun((await hold(1)).reservationId);
    const error = await expectRefusal(hold(1), "rate_limited");
    expect(error.retryAfterSeconds).to.be.within(55, 65);
    await write();
    await age("runs_by_tick", 12);
    await expectRefusal(hold(1), "rate_limited");
    await age("runs_by_tick", 1);
    await run(1);
  });

  it("hold for runs that cost nothing, too", async () => {
    await limit({ runsPerMinute: 1 });
    const free = await openCredits({ prices: { managementWriteCents: 0, runSecondCents: 0 } });
    await run(1, free);
    await expectRefusal(hold(1, free), "rate_limited");
    await free.stop();
  });

  it("refuse other origins where a request says one", async () => {
    await limit({ origins: ["https://app.example", "http://localhost:3000"] });
    await expectRefusal(hold(1, bench, "https://evil.example"), "origin_not_allowed");
    await expectRefusal(hold(1, bench, "null"), "origin_not_allowed");
    for (const origin of [undefined, "https://app.example", "http://localhost:3000"]) await hold(1, bench, origin);
  });

  it("concern one key of one account", async () => {
    await limit({ centsPerDay: 1, runsPerMinute: 1, origins: ["https://app.example"] });
    await run(1);
    const other = { accountId, keyId: freshKey(), limitMs: 1000, origin: "https://evil.example" };
    await bench.credits.reservations.reserveRun(other);
    await bench.credits.reservations.reserveRun({ accountId, limitMs: 1000 });
    const elsewhere = freshAccount();
    await fund(bench.db, elsewhere, 10);
    await bench.credits.reservations.reserveRun({ accountId: elsewhere, keyId, limitMs: 1000 });
  });

  it("never count less than what is held or was spent, also when they are changed meanwhile", async () => {
    const early = await hold(50);
    await limit({ centsPerDay: 10 });
    const inside = await hold(10);
    await limit({});
    expect(await listed()).to.equal(undefined);
    await bench.credits.reservations.settleRun(early.reservationId, 50_000);
    await bench.credits.reservations.releaseRun(inside.reservationId);
    await limit({ centsPerDay: 10 });
    expect(await listed()).to.deep.include({ centsUsed: 0 });
    expect((await hold(60)).limitMs).to.equal(10_000);
    await expectRefusal(hold(1), "key_day_spent");
  });

  it("are given back what writes do not cost in the end", async () => {
    await limit({ centsPerDay: 2 });
    const ids = [freshKey(), freshKey()];
    for (const submissionId of ids)
      await bench.credits.reservations.reserveWrite({ accountId, keyId, submissionId, cents: 1 });
    await expectRefusal(write(), "key_day_spent");
    const ends = ids.map((submissionId, at) => ({ submissionId, charged: at === 0 }));
    await bench.db.transaction().execute((trx) => bench.credits.reservations.endWrites(ends, trx));
    expect(await listed()).to.deep.include({ centsUsed: 1 });
  });

  it("are exceeded by no number of requests at once, at two relayers", async () => {
    await limit({ centsPerDay: 25 });
    const attempts = Array.from({ length: 80 }, async (_, at) => {
      const by = at % 2 === 0 ? bench : peer;
      if (at % 4 === 3) return (await write(by)) ? 1 : 0;
      return run(1, by);
    });
    const spent = (await Promise.allSettled(attempts)).filter((one) => one.status === "fulfilled");
    expect(spent).to.have.length(25);
    expect(await listed()).to.deep.include({ centsUsed: 25 });
  });

  it("let no more runs begin in a minute, at two relayers", async () => {
    await limit({ runsPerMinute: 9 });
    const attempts = await Promise.allSettled(Array.from({ length: 60 }, (_, at) => run(1, at % 2 ? bench : peer)));
    expect(attempts.filter((one) => one.status === "fulfilled")).to.have.length(9);
    const codes = attempts.map((one) => (one.status === "rejected" ? (one.reason as { code: string }).code : "ran"));
    expect(new Set(codes)).to.deep.equal(new Set(["ran", "rate_limited"]));
  });
});
