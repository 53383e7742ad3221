import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table run_records (
    run_id text primary key,
    account_id text not null,
    key_id text not null,
    action_hash text not null,
    cid text not null,
    outcome text not null,
    request_id text not null,
    duration_ms float8 not null check (duration_ms >= 0),
    cost_cents int8 not null check (cost_cents >= 0),
    pkps_used jsonb not null,
    started_at timestamptz not null
  )`.execute(db);
  // One index for the list and one per filter: pages are read from an index, however many runs there are.
  await sql`create index run_records_by_account on run_records (account_id, started_at desc, run_id)`.execute(db);
  await sql`create index run_records_by_key on run_records (account_id, key_id, started_at desc, run_id)`.execute(db);
  await sql`create index run_records_by_action
    on run_records (account_id, action_hash, started_at desc, run_id)`.execute(db);
  await sql`create index run_records_by_outcome on run_records (account_id, outcome, started_at desc, run_id)`.execute(
    db,
  );
  await sql`create index run_records_by_age on run_records (started_at)`.execute(db);
  // Number of records per combination of filters; '' stands for "any". Lists never count rows.
  await sql`create table run_counts (
    account_id text not null,
    key_id text not null,
    action_hash text not null,
    outcome text not null,
    runs int8 not null check (runs >= 0),
    primary key (account_id, key_id, action_hash, outcome)
  )`.execute(db);
  await sql`create table run_days (
    account_id text not null,
    day date not null,
    key_id text not null,
    runs int8 not null,
    failed int8 not null,
    cost_cents int8 not null,
    duration_ms float8 not null,
    primary key (account_id, day, key_id)
  )`.execute(db);
  await sql`create index run_days_by_age on run_days (day)`.execute(db);
}
