/** Lists that have become long: no page visits more rows than are bounded, and every row can be reached. */
import { expect } from "chai";
import { sql } from "kysely";
import { expectRefusal } from "../../support/refusal";
import { freshAccount, openCredits, type CreditsBench } from "../../support/credits";
import { MAX_PAGE_OFFSET } from "../../../relayer/credits/page";

const ROWS = 3 * MAX_PAGE_OFFSET;
const SIZE = 1_000;

describe("long lists", function () {
  this.timeout(60_000);
  const account = freshAccount();
  let bench: CreditsBench;
  before(async () => {
    bench = await openCredits();
    const { db } = bench;
    await sql`insert into credit_accounts (account_id, balance_cents, entries)
      values (${account}, ${ROWS}, ${ROWS})`.execute(db);
    await sql`insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key)
      select ${account}, 'payments', 1, 'top_up', n::text, ${account} || n
        from generate_series(1, ${ROWS}::int) n`.execute(db);
    await sql`insert into run_records (run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms,
        cost_cents, pkps_used, started_at)
      select ${account} || n, ${account}, 'k', 'a', 'c', 'succeeded', n::text, 1, 1, '[]',
        to_timestamp(1e9 + floor(n / 7)) from generate_series(1, ${ROWS}::int) n`.execute(db);
    await sql`insert into run_counts values (${account}, '', '', '', ${ROWS})`.execute(db);
  });
  after(() => bench.stop());

  it("refuse a page too far back with what to use instead, and answer one past the end with nothing", async () => {
    const far = { number: MAX_PAGE_OFFSET / SIZE + 1, size: SIZE };
    expect((await expectRefusal(bench.credits.runs.list(account, {}, far), "invalid_value")).detail).to.include(
      "until",
    );
    const history = bench.credits.accounts.history(account, far);
    expect((await expectRefusal(history, "invalid_value")).detail).to.include("before");
    const past = { number: 10 ** 12, size: SIZE };
    expect(await bench.credits.runs.list(account, {}, past)).to.deep.equal({ runs: [], total: ROWS });
    expect(await bench.credits.accounts.history(account, past)).to.deep.equal({ entries: [], total: ROWS });
  });

  it("reach every entry of the ledger, each once", async () => {
    const ids: number[] = [];
    for (;;) {
      const { entries } = await bench.credits.accounts.history(account, { number: 0, size: SIZE }, ids.at(-1));
      if (entries.length === 0) break;
      ids.push(...entries.map(({ id }) => id));
    }
    expect(ids).to.have.length(ROWS);
    expect([...ids].sort((a, b) => b - a)).to.deep.equal(ids);
  });

  it("reach every run, although several started in one second", async () => {
    const seen = new Set<string>();
    let until: number | undefined;
    for (;;) {
      const { runs } = await bench.credits.runs.list(account, { until }, { number: 0, size: SIZE });
      const before = seen.size;
      for (const { requestId } of runs) seen.add(requestId);
      if (seen.size === before) break;
      until = Math.floor((runs.at(-1)?.startedAt.getTime() ?? 0) / 1000);
    }
    expect(seen.size).to.equal(ROWS);
  });
});
