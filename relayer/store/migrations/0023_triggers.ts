import { sql, type Kysely } from "kysely";

/**
 * Triggers and their firings. A firing is a row before anything runs; it is claimed by one instance at a time, and
 * `began` is set before code may run, so that a row left behind says whether it may be made again.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table triggers (
    id text primary key,
    account_id text not null,
    key_id text not null unique,
    name text not null,
    kind text not null,
    settings jsonb not null,
    cid text not null,
    params_sha256 text not null,
    code text,
    sealed text not null,
    state text not null,
    reason text,
    failures int4 not null default 0,
    next_due timestamptz,
    from_block int8,
    last_fired_at timestamptz,
    last_outcome text,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index triggers_by_account on triggers (account_id, created_at, id)`.execute(db);
  await sql`create index triggers_due on triggers (next_due) where state = 'active'`.execute(db);
  await sql`create index triggers_of_events on triggers (id) where state = 'active' and kind = 'event'`.execute(db);
  await sql`create index triggers_unattached on triggers (id) where state = 'unattached'`.execute(db);
  await sql`create table trigger_firings (
    id text primary key,
    trigger_id text not null references triggers (id) on delete cascade,
    account_id text not null,
    cause_key text not null,
    cause jsonb,
    kind text not null,
    state text not null,
    due_at timestamptz not null,
    not_before timestamptz not null,
    instance_id text,
    attempt int4 not null default 0,
    began boolean not null default false,
    outcome text,
    detail text,
    duration_ms float8,
    cost_cents int8,
    receipt text,
    started_at timestamptz,
    ended_at timestamptz,
    unique (trigger_id, cause_key)
  )`.execute(db);
  await sql`create index trigger_firings_waiting on trigger_firings (account_id, due_at, id)
    where state = 'waiting'`.execute(db);
  await sql`create index trigger_firings_running on trigger_firings (instance_id) where state = 'running'`.execute(db);
  await sql`create index trigger_firings_by_trigger on trigger_firings (trigger_id, due_at desc, id)`.execute(db);
  await sql`create index trigger_firings_by_age on trigger_firings (ended_at) where state = 'ended'`.execute(db);
  await sql`create table trigger_scans (
    confirmations int4 primary key,
    next_block int8 not null,
    recent jsonb not null
  )`.execute(db);
  await sql`insert into chain_duties (name) values ('find_logs')`.execute(db);
  await sql`alter table run_ends add column trigger_id text`.execute(db);
  await sql`alter table run_records add column trigger_id text`.execute(db);
}
