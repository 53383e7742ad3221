/**
 * Records of runs in the ledger: one for each run, with totals that need no counting, deleted after their retention.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import { actionHashOf, type AccountId, type Cid, type Hash32 } from "../../../protocol/ids";
import { close, settleLate } from "../../../relayer/credits/holds";
import { dropOldRuns, recordEnds } from "../../../relayer/credits/runRecords";
import type { RunRecord } from "../../../relayer/credits/types";
import { expectBalancedBooks } from "../../support/books";
import { freshAccount, freshKey, fund, openCredits, reservationsOf, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid;
const OTHER = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD" as Cid;
const FIRST = { number: 0, size: 50 };
const ALWAYS = { from: "2000-01-01", to: "2999-12-31" };

function record(accountId: AccountId, given: Partial<RunRecord> = {}): RunRecord {
  const cid = given.cid ?? CID;
  const plain = {
    accountId,
    keyId: accountId as Hash32,
    requestId: randomUUID(),
    cid,
    durationMs: 10.5,
    outcome: "succeeded",
    pkpsUsed: [],
    receiptSha256: "3c".repeat(32),
  } as const;
  return { ...plain, startedAt: new Date(), ...given, actionHash: actionHashOf(cid) };
}

async function settled(
  { credits }: CreditsBench,
  accountId: AccountId,
  given: Partial<RunRecord> = {},
): Promise<string> {
  const { reservationId } = await credits.reservations.reserveRun({ accountId, limitMs: 5_000 });
  await credits.reservations.settleRun(reservationId, 10, record(accountId, given));
  return reservationId;
}

describe("records of runs", () => {
  let bench: CreditsBench;
  before(async () => {
    bench = await openCredits();
  });
  after(() => bench.stop());
  afterEach(() => expectBalancedBooks(bench.db));

  async function ran(accountId: AccountId, given: Partial<RunRecord> = {}): Promise<string> {
    return settled(bench, accountId, given);
  }

  const totalOf = async (accountId: AccountId, filter = {}): Promise<number> =>
    (await bench.credits.runs.list(accountId, filter, FIRST)).total;

  it("contain key, action, time, price, outcome and PKPs, newest first", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const keyId = freshKey();
    await ran(accountId, { startedAt: new Date("2026-03-01T10:00:00Z") });
    const pkp = `0x${"Ab".repeat(20)}` as RunRecord["pkpsUsed"][number];
    await ran(accountId, {
      keyId,
      cid: OTHER,
      outcome: "threw",
      pkpsUsed: [pkp],
      receiptSha256: "a7".repeat(32),
      startedAt: new Date("2026-03-02T10:00:00Z"),
    });
    const { runs, total } = await bench.credits.runs.list(accountId, {}, FIRST);
    expect(total).to.equal(2);
    expect(runs.map(({ cid, costCents, outcome, pkpsUsed }) => [cid, costCents, outcome, pkpsUsed])).to.deep.equal([
      [OTHER, 1, "threw", [pkp]],
      [CID, 1, "succeeded", []],
    ]);
    expect(runs.map(({ receiptSha256 }) => receiptSha256)).to.deep.equal(["a7".repeat(32), "3c".repeat(32)]);
    expect((await bench.credits.runs.usage(accountId, ALWAYS, FIRST)).days).to.deep.equal([
      { day: "2026-03-02", keyId, runs: 1, failed: 1, changes: 0, changesCents: 0, costCents: 1, durationMs: 10.5 },
      {
        day: "2026-03-01",
        keyId: accountId,
        runs: 1,
        failed: 0,
        changes: 0,
        changesCents: 0,
        costCents: 1,
        durationMs: 10.5,
      },
    ]);
    expect((await bench.credits.runs.usage(accountId, { from: "2026-03-02", to: "2026-03-02" }, FIRST)).total).to.equal(
      1,
    );
  });

  it("are summed by day a page at a time, with the total on each, and none too far from the newest day", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    for (const day of ["01", "02", "03"]) await ran(accountId, { startedAt: new Date(`2026-03-${day}T10:00:00Z`) });
    const page = async (number: number, size: number): Promise<unknown> => {
      const { days, total } = await bench.credits.runs.usage(accountId, ALWAYS, { number, size });
      return [days.map(({ day }) => day), total];
    };
    expect(await page(0, 2)).to.deep.equal([["2026-03-03", "2026-03-02"], 3]);
    expect(await page(1, 2)).to.deep.equal([["2026-03-01"], 3]);
    expect(await page(2, 2)).to.deep.equal([[], 3]);
    expect(await page(1e12, 1_000)).to.deep.equal([[], 3]);
    await sql`insert into run_days (account_id, day, key_id, runs, failed, cost_cents, duration_ms)
      select ${accountId}, '2026-01-01', 'key' || n, 0, 0, 0, 0 from generate_series(1, 10100) n`.execute(bench.db);
    await expectRefusal(bench.credits.runs.usage(accountId, ALWAYS, { number: 101, size: 100 }), "invalid_value");
    await sql`delete from run_days where account_id = ${accountId} and key_id like 'key%'`.execute(bench.db);
  });

  it("are found by every combination of filters, with the total of each", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const [one, two] = [freshKey(), freshKey()];
    const all = [
      { keyId: one, cid: CID, outcome: "succeeded" },
      { keyId: one, cid: CID, outcome: "threw" },
      { keyId: two, cid: CID, outcome: "threw" },
      { keyId: two, cid: OTHER, outcome: "succeeded" },
    ] as const;
    for (const given of all) await ran(accountId, given);
    for (const keyId of [undefined, one, two])
      for (const cid of [undefined, CID, OTHER])
        for (const outcome of [undefined, "succeeded", "threw"] as const) {
          const wanted = all.filter(
            (run) =>
              (keyId ?? run.keyId) === run.keyId &&
              (cid ?? run.cid) === run.cid &&
              (outcome ?? run.outcome) === run.outcome,
          );
          const found = await bench.credits.runs.list(
            accountId,
            { keyId, outcome, actionHash: cid && actionHashOf(cid) },
            FIRST,
          );
          expect([found.total, found.runs.length], `${keyId} ${cid} ${outcome}`).to.deep.equal([
            wanted.length,
            wanted.length,
          ]);
        }
  });

  it("are written once, however often a run's end is reported", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 5_000 });
    const once = record(accountId);
    for (let time = 0; time < 3; time++) await bench.credits.reservations.settleRun(reservationId, 10, once);
    await bench.credits.reservations.releaseRun(reservationId, once);
    const { runs, total } = await bench.credits.runs.list(accountId, {}, FIRST);
    expect([total, runs.length, runs[0]?.costCents]).to.deep.equal([1, 1, 1]);
  });

  it("have the price of a run that was settled after its reservation had been given back", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const dead = reservationsOf(bench.db, "an instance that is gone");
    const { reservationId: id } = await dead.reserveRun({ accountId, limitMs: 5_000 });
    await close(bench.db, { id, state: "released", costCents: 0, only: "orphaned" });
    const end = { id, state: "settled", costCents: 2, record: record(accountId) } as const;
    expect(await close(bench.db, end)).to.equal(undefined);
    // Ends become records at any time.
    await recordEnds(bench.db);
    expect(await settleLate(bench.db, end)).to.equal(2);
    expect(await settleLate(bench.db, end), "once").to.equal(undefined);
    const { runs, total } = await bench.credits.runs.list(accountId, {}, FIRST);
    expect([total, runs[0]?.costCents]).to.deep.equal([1, 2]);
  });

  it("include free runs and service faults", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 5_000 });
    await bench.credits.reservations.releaseRun(reservationId, record(accountId, { outcome: "sandbox_crashed" }));
    const free = await openCredits({ prices: { managementWriteCents: 1, runSecondCents: 0 } });
    const unpaid = await free.credits.reservations.reserveRun({ accountId, limitMs: 5_000 });
    await free.credits.reservations.settleRun(unpaid.reservationId, 3, record(accountId));
    await free.stop();
    const { runs, total } = await bench.credits.runs.list(accountId, {}, FIRST);
    expect(total).to.equal(2);
    expect(runs.map(({ costCents }) => costCents)).to.deep.equal([0, 0]);
  });

  it("keep their totals correct with concurrent runs of one account", async () => {
    const accountId = freshAccount();
    const free = await openCredits({ prices: { managementWriteCents: 1, runSecondCents: 0 } });
    const keys = [freshKey(), freshKey(), freshKey()];
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const { credits } = index % 2 === 0 ? free : bench;
        const keyId = keys[index % keys.length] as Hash32;
        await credits.reservations.settleRun(
          randomUUID(),
          5,
          record(accountId, { keyId, cid: index % 5 === 0 ? OTHER : CID }),
        );
      }),
    );
    await free.stop();
    expect(await totalOf(accountId)).to.equal(60);
    expect(await totalOf(accountId, { keyId: keys[0] })).to.equal(20);
    expect(await totalOf(accountId, { actionHash: actionHashOf(OTHER) })).to.equal(12);
  });

  it("are deleted after their retention, and their totals with them", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const old = new Date(Date.now() - 91 * 24 * 3600 * 1000);
    for (let index = 0; index < 3; index++) await ran(accountId, { startedAt: old, keyId: freshKey() });
    await ran(accountId);
    await dropOldRuns(bench.db, 90, 7);
    expect(await totalOf(accountId)).to.equal(1);
    expect((await bench.credits.runs.usage(accountId, ALWAYS, FIRST)).total).to.equal(1);
    const { rows } = await sql<{
      n: number;
    }>`select count(*) as n from run_counts where account_id = ${accountId}`.execute(bench.db);
    expect(rows[0]?.n, "one row for each combination of filters that finds something").to.equal(8);
  });

  it("keep the message of a failed run for a while, and the record longer", async () => {
    const accountId = freshAccount();
    await fund(bench.db, accountId, 100);
    const failed = { outcome: "threw", errorMessage: "Error: no such pair" } as const;
    await ran(accountId, { ...failed, startedAt: new Date(Date.now() - 8 * 24 * 3600 * 1000) });
    await ran(accountId, failed);
    const messages = async (): Promise<unknown[]> =>
      (await bench.credits.runs.list(accountId, {}, FIRST)).runs.map(({ errorMessage }) => errorMessage);
    expect(await messages()).to.deep.equal([failed.errorMessage, failed.errorMessage]);
    await dropOldRuns(bench.db, 90, 7);
    expect(await messages()).to.deep.equal([failed.errorMessage, undefined]);
  });

  it("read a page from an index, for every filter", async () => {
    const accountId = freshAccount();
    const plan = async (where: string): Promise<string> => {
      const text =
        `explain select * from run_records where account_id = '${accountId}' ${where} order by ` +
        "started_at desc, run_id limit 50";
      return bench.db.connection().execute(async (one) => {
        await sql`set enable_sort = off`.execute(one);
        const { rows } = await sql.raw<Record<string, string>>(text).execute(one);
        await sql`reset enable_sort`.execute(one);
        return rows.map((row) => Object.values(row)[0]).join("\n");
      });
    };
    for (const where of [
      "",
      `and key_id = '${randomBytes(4).toString("hex")}'`,
      "and action_hash = 'x'",
      "and outcome = 'threw'",
    ]) {
      expect(await plan(where), where)
        .to.match(/Index (Only )?Scan using run_records_by_/)
        .and.not.match(/Sort/);
    }
  });
});
