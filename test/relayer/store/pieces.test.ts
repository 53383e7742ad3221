/** Periodic work on very many rows: it is done in pieces, so that no statement changes or returns many of them. */
import { expect } from "chai";
import { sql, type PostgresPool } from "kysely";
import { Firings } from "../../../relayer/triggers/firings";
import type { Store } from "../../../relayer/store";
import { dropOld } from "../../../relayer/store/retention";
import { dropExpiredRates } from "../../../relayer/store/rateLimits";
import { SharedCodeStore } from "../../../relayer/store/sharedCode";
import { reservationsOf } from "../../support/credits";
import { openTestStore } from "../../support/testStore";

const MANY = 1_300;
const MOST = 1_000;
/** More than what is deleted of it at a time. */
const EXCESS = 700;
const ME = "me";

/** What periodic work deletes, forgets or releases. */
const OLD: readonly string[] = [
  `insert into instances (id, renewed_at) select 'dead ' || n, now() - interval '2 days' from many`,
  `insert into idempotent_requests (scope, key, body_hash, state, instance_id, attempt_id, created_at)
    select 'old', n, '', 'open', '', '', now() - interval '9 days' from many`,
  `insert into rate_limits (key, points, expire) select 'old ' || n, 1, n from many`,
  `insert into fleeting_rates (key, points, expire) select 'old ' || n, 1, n from many`,
  `insert into key_expiries (key_id, expires_at, account_id) select 'key ' || n, n, '' from many`,
  `insert into webhooks (id, account_id, events, description, asked_at)
    select 'wh ' || n, 'webhooks', '[]', '', now() - interval '9 days' from many`,
  `insert into webhook_events (id, account_id, type, data, created_at)
    select 'event ' || n, 'webhooks', '', '{}', now() - interval '9 days' from many`,
  `insert into webhook_deliveries (webhook_id, place) select 'wh 1', place from webhook_events`,
  `insert into credit_accounts (account_id, reserved_cents) values ('account', ${MANY}) on conflict do nothing`,
  `insert into credit_reservations (id, kind, account_id, reserved_cents, state, cost_cents, instance_id, closed_at)
    select 'closed ' || n, 'run', 'account', 1, 'settled', 1, '', now() - interval '9 days' from many`,
  `insert into credit_reservations (id, kind, account_id, reserved_cents, instance_id)
    select 'lost ' || n, 'run', 'account', 1, '${ME}' from many`,
  `insert into run_records (run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms, cost_cents,
      pkps_used, started_at, error_message)
    select 'run ' || n, 'account', '', '', '', 'threw', '', 1, 1, '[]', now() - interval '99 days', 'no' from many`,
  `insert into run_days (account_id, day, key_id, runs, failed, cost_cents, duration_ms)
    select 'account ' || n, now() - interval '99 days', '', 1, 1, 1, 1 from many`,
  `insert into lanes (payer, address, next_nonce) values (1, 'lane', 0)`,
  `insert into transactions (id, purpose, state, payer, nonce, gas_limit, updated_at)
    select 'tx ' || n, 'writes', 'confirmed', 1, n, 1, now() - interval '9 days' from many`,
  `insert into attempts (hash, transaction_id, is_noop, raw, max_fee, priority_fee, created_at)
    select 'tx ' || n, 'tx ' || n, false, '0x', 1, 1, now() - interval '9 days' from many`,
  `insert into writes (id, account_id, kind, state, transaction_id, place, calldata, billed, updated_at)
    select 'write ' || n, 'account', '', 'done', 'tx ' || n, 0, '0x', false, now() - interval '9 days' from many`,
  `insert into triggers (id, account_id, key_id, name, kind, settings, cid, params_sha256, sealed, state, created_at)
    select 'unused ' || n, '', 'unused ' || n, '', 'schedule', '{}', '', '', '', 'deleted', now() from many`,
  `insert into triggers (id, account_id, key_id, name, kind, settings, cid, params_sha256, sealed, state)
    values ('paused', '', 'paused', '', 'schedule', '{}', '', '', '', 'paused')`,
  `insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before, ended_at,
      detail)
    select 'ended ' || n, 'paused', '', 'ended ' || n, 'schedule', 'ended', now(), now(), now() - interval '99 days', ''
    from many`,
  `insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before)
    select 'waiting ' || n, 'paused', '', 'waiting ' || n, 'schedule', 'waiting', now(), now() from many`,
  `insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before, instance_id)
    select 'lost ' || n, 'paused', '', 'lost ' || n, 'schedule', 'running', now(), now(), 'dead' from many`,
  `insert into followed_blocks values (1, '0x1')`,
  `insert into shared_code (cid, code, bytes, touched_at)
    select 'cid ' || n, '', 1, now() - interval '9 days' from generate_series(1, 3 * ${MANY}) n`,
  // A third without uses, one with uses of long ago, and one with too much.
  `insert into shared_code_uses (account_id, cid, bytes, used_at)
    select 'account', 'cid ' || n, 1, now() - interval '99 days' from generate_series(1, ${MANY}) n
    union all select 'account', 'cid ' || n, 1, now() from generate_series(${MANY} + 1, 2 * ${MANY}) n`,
];

describe("periodic work on very many rows", function () {
  this.timeout(120_000);
  let store: Store;
  const returned = new Map<string, number>();

  before(async () => {
    store = await openTestStore({ around: notingRows(returned) });
    await sql`create table changed_rows (name text, rows int8)`.execute(store.db);
    await sql`create function note_changes() returns trigger language plpgsql as $$
      begin
        insert into changed_rows select tg_table_name || ' ' || lower(tg_op), count(*) from changed;
        return null;
      end $$`.execute(store.db);
    for (const query of OLD)
      await sql.raw(query.replaceAll("from many", `from generate_series(1, ${MANY}) n`)).execute(store.db);
    await sql`insert into run_counts select account_id, k, a, o, count(*) from run_records,
        unnest(array['', key_id]) k, unnest(array['', action_hash]) a, unnest(array['', outcome]) o
      group by account_id, k, a, o`.execute(store.db);
    const { rows } = await sql<{ name: string }>`select table_name as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'changed_rows'`.execute(store.db);
    for (const { name } of rows.filter(({ name: table }) => table !== "ledger_entries"))
      for (const [act, kind] of [["delete", "old"] as const, ["update", "new"] as const])
        await sql`create trigger ${sql.ref(`note_${act}`)} after ${sql.raw(act)} on ${sql.table(name)}
          referencing ${sql.raw(kind)} table as changed for each statement execute function note_changes()`.execute(
          store.db,
        );
    returned.clear();
  });
  after(() => store.close());

  it("is done in pieces, and all of it", async () => {
    const { db } = store;
    const firings = new Firings({ db, instanceId: ME, onPaused: async () => undefined });
    const reservations = reservationsOf(db, ME);
    await firings.releaseLost();
    await firings.endPaused();
    while ((await reservations.sweep()) > 0);
    await new SharedCodeStore(db, { totalBytes: MANY - EXCESS, days: 90 }).trim();
    await dropExpiredRates(db);
    await dropOld(db, { detailDays: 7, runRecordsDays: 90 });
    const left = async (table: string): Promise<number> =>
      Number((await sql.raw<{ n: number }>(`select count(*) as n from ${table}`).execute(db)).rows[0]?.n);
    for (const table of [
      "instances",
      "idempotent_requests",
      "key_expiries",
      "webhooks",
      "webhook_events",
      "rate_limits",
      "fleeting_rates",
    ])
      expect(await left(table), table).to.equal(0);
    for (const table of ["run_records", "run_days", "attempts", "writes where calldata is not null"])
      expect(await left(table), table).to.equal(0);
    expect(await left("shared_code")).to.equal(MANY - EXCESS);
    expect(await left("triggers")).to.equal(1);
    expect(await left("trigger_firings where state <> 'ended' or detail is not null")).to.equal(0);
    expect(await left("credit_reservations where state = 'held'")).to.equal(0);
    const { rows: changed } = await sql<{ name: string; rows: number }>`
      select name, max(rows)::int4 as rows from changed_rows group by name`.execute(db);
    expect(
      changed.filter(({ rows: most }) => most > MOST),
      "rows changed by a statement",
    ).to.be.empty;
    expect(
      [...returned].filter(([, most]) => most > MOST),
      "rows returned by a statement",
    ).to.be.empty;
  });
});

/** Notes the most rows that each statement returned. */
const notingRows =
  (returned: Map<string, number>) =>
  (pool: PostgresPool): PostgresPool => ({
    connect: async () => {
      const client = await pool.connect();
      const query = client.query as unknown as (
        text: string,
        values: readonly unknown[],
      ) => Promise<{ readonly rows: readonly unknown[] }>;
      const noting = async (text: string, values: readonly unknown[]): Promise<unknown> => {
        const answer = await query(text, values);
        returned.set(text, Math.max(answer.rows.length, returned.get(text) ?? 0));
        return answer;
      };
      return { query: noting as unknown as typeof client.query, release: () => client.release() };
    },
    end: () => pool.end(),
  });
