/** The tables that grow with use, and what ages those of them that neither submissions nor postings fill. */
import { sql, type RawBuilder } from "kysely";
import type { Db } from "../../relayer/store/database";

/** Filled with submissions and postings (`oldStore.ts`). */
export const AGED_WITH_USE = [
  "credit_accounts",
  "ledger_entries",
  "credit_reservations",
  "run_records",
  "transactions",
  "writes",
];

/** Tables that stay small, and why. */
export const SMALL_TABLES: Readonly<Record<string, string>> = {
  instances: "a row for each relayer that runs, or died within the last day",
  credit_settings: "a row for each setting",
  chain_duties: "a row for each duty",
  chain_settings: "a row for each setting",
  lanes: "a row for each payer",
  followed_blocks: "the blocks that are not final yet",
  trigger_scans: "a row for each chain and depth that triggers watch",
  run_ends: "the ends of the last second",
  mint_counts: "a few rows for each of a week's new accounts, whose number a day has a limit",
};

/** Accounts that own many rows each. */
const ACCOUNTS = 1_000;
/** Webhooks for which messages wait: receivers that fail. */
const FAILING_WEBHOOKS = 1_000;
/** Triggers of events: all of them are read for each block. */
const EVENT_TRIGGERS = 1_000;

const account = sql`'old ' || n % ${sql.lit(ACCOUNTS)}`;
const hash = sql`'0x' || lpad(to_hex(n), 64, '0')`;

/**
 * One statement for each table; each inserts the rows `n` of `rows`. In this order, as far as rows refer to others. Of
 * what is kept for days, all is still to be kept; of what is due, nothing is.
 */
const OTHERS: Readonly<Record<string, (rows: RawBuilder<unknown>, all: number) => RawBuilder<unknown>>> = {
  key_spending: (rows) => sql`insert into key_spending (key_id, spent_cents) select 'old ' || n, 1 from ${rows}`,
  key_limits: (rows) => sql`insert into key_limits (account_id, key_id, cents_per_day)
    select ${account}, 'old ' || n, 1000 from ${rows}`,
  payments: (rows) => sql`insert into payments (intent_id, account_id, credited_cents)
    select 'old ' || n, 'old 0', 500 from ${rows}`,
  payment_claims: (rows) => sql`insert into payment_claims (claim_id, kind, intent_id, amount_cents, withdrawn)
    select 'old ' || n, 'dispute', 'old ' || n, 1, true from ${rows}`,
  payment_attempts: (rows) => sql`insert into payment_attempts (account_id, attempt_key, amount_cents)
    select 'old 0', 'old ' || n, 500 from ${rows}`,
  account_turns: (rows) => sql`insert into account_turns (account_id, last_block) select 'old ' || n, 1 from ${rows}`,
  attempts: (rows) => sql`insert into attempts (hash, transaction_id, is_noop, raw, max_fee, priority_fee, created_at)
    select 'old ' || n, 'old ' || n, false, '0x' || repeat('cd', 300), 1, 1, now() - interval '1 day'
    from ${rows} join transactions on id = 'old ' || n`,
  chain_events: (rows) => sql`insert into chain_events (account_id, name, block_number, block_hash, transaction_hash,
      log_index, args, owner)
    select ${account}, case n % 4 when 0 then 'UsageApiKeySet' when 1 then 'PkpAddedToGroup'
        when 2 then 'ActionAddedToGroup' else 'AccountOwnershipTransferred' end, 0, '0x', '0x' || n, n,
      json_build_object('keyId', ${hash}, 'groupId', (n / ${sql.lit(ACCOUNTS)} % 100)::text, 'pkpId', ${hash},
        'expiration', '0'),
      case when n % 4 = 3 then 'owner ' || n end
    from ${rows}`,
  idempotent_requests: (rows) => sql`insert into idempotent_requests (scope, key, body_hash, state, instance_id,
      attempt_id, status, answer, created_at)
    select ${account}, 'old ' || n, '', 'done', 'old', 'old ' || n, 200, '{}', now() - n % 20 * interval '1 hour'
    from ${rows}`,
  rate_limits: (rows) => sql`insert into rate_limits (key, points, expire)
    select 'old ' || n, 1, 1e15 from ${rows}`,
  fleeting_rates: (rows) => sql`insert into fleeting_rates (key, points, expire)
    select 'old ' || n, 1, 1e15 from ${rows}`,
  run_counts: (rows) => sql`insert into run_counts (account_id, key_id, action_hash, outcome, runs)
    select ${account}, 'old ' || n, '', '', 1 from ${rows}`,
  run_days: (rows) => sql`insert into run_days (account_id, day, key_id, runs, failed, cost_cents, duration_ms)
    select ${account}, now() - n % 80 * interval '1 day', 'old ' || n, 1, 0, 1, 1 from ${rows}`,
  known_cids: (rows) => sql`insert into known_cids (action_hash, cid) select 'old ' || n, 'old ' || n from ${rows}`,
  shared_code: (rows) => sql`insert into shared_code (cid, code, bytes)
    select 'old ' || n, convert_to(repeat('x', 500), 'UTF8'), 500 from ${rows}`,
  shared_code_uses: (rows) => sql`insert into shared_code_uses (account_id, cid, bytes)
    select ${account}, 'old ' || n, 500 from ${rows}`,
  webhooks: (rows) => sql`insert into webhooks (id, account_id, url, events, description, asked_at)
    select 'old ' || n, 'old ' || n, case when n % 2 = 0 then 'https://example.com' end, '["*"]', '', now()
    from ${rows}`,
  webhook_events: (rows) => sql`insert into webhook_events (id, account_id, type, data, created_at)
    select 'old ' || n, 'old ' || n, 'run.succeeded', '{}', now() - n % 6 * interval '1 day' from ${rows}`,
  webhook_deliveries: (rows) => sql`insert into webhook_deliveries (webhook_id, place, state, due_at)
    select 'old ' || n % ${sql.lit(FAILING_WEBHOOKS)}, place, case when n % 100 = 0 then 'pending' else 'delivered' end,
      now() + interval '1 day'
    from ${rows} join webhook_events on id = 'old ' || n`,
  key_expiries: (rows) => sql`insert into key_expiries (key_id, expires_at, account_id)
    select 'old ' || n, floor(extract(epoch from now()))::int8 + n % 360 * 86400, ${account} from ${rows}`,
  triggers: (rows) => sql`insert into triggers (id, account_id, key_id, name, kind, settings, cid, params_sha256,
      sealed, state, next_due)
    select 'old ' || n, ${account}, 'old ' || n, '', case when n < ${sql.lit(EVENT_TRIGGERS)} then 'event'
      else 'schedule' end, '{"event": {}}'::jsonb, '', '', '', case n % 10 when 0 then 'paused' when 1 then 'unattached'
      else 'active' end, now() + interval '9 days'
    from ${rows}`,
  trigger_firings: (rows, all) => sql`insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state,
      due_at, not_before, started_at, ended_at, outcome, detail)
    select 'old ' || n, 'old ' || n % ${sql.lit(Math.ceil(all / 10))}, ${account}, 'old ' || n, 'schedule', 'ended',
      now(), now(), now(), now() - n % 80 * interval '1 day', 'succeeded', case when n % 80 < 7 then 'no' end
    from ${rows}`,
  budgets: (rows) => sql`insert into budgets (account_id, action_hash, cid, name, "window", last_limit)
    select ${account}, 'old ' || n, 'old', 'budget', 'day', '1' from ${rows}`,
};

/** Every table that grows with use. */
export const GROWING_TABLES = [...AGED_WITH_USE, ...Object.keys(OTHERS)];

const ROWS_PER_STATEMENT = 100_000;

/** `rows` of each table. */
export async function makeOthersOld(db: Db, rows: number): Promise<void> {
  for (const fill of Object.values(OTHERS))
    for (let from = 0; from < rows; from += ROWS_PER_STATEMENT) {
      const to = Math.min(rows, from + ROWS_PER_STATEMENT) - 1;
      await db.transaction().execute(async (trx) => {
        // Of what triggers would add, such as messages to webhooks, there is enough.
        await sql`set local session_replication_role = replica`.execute(trx);
        await fill(sql`generate_series(${sql.lit(from)}::int, ${sql.lit(to)}::int) n`, rows).execute(trx);
      });
    }
}
