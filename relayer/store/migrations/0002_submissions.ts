import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await duties(db);
  await lanes(db);
  await submissions(db);
  await attempts(db);
}

async function duties(db: Kysely<unknown>): Promise<void> {
  await sql`create table chain_duties (name text primary key, instance_id text)`.execute(db);
  await sql`insert into chain_duties (name) values ('keep_lanes'), ('follow_events')`.execute(db);
  await sql`create table chain_settings (name text primary key, value jsonb not null)`.execute(db);
}

async function lanes(db: Kysely<unknown>): Promise<void> {
  await sql`create table lanes (
    payer int4 primary key check (payer >= 0),
    address text not null unique,
    next_nonce int8 not null check (next_nonce >= 0),
    draining boolean not null default false,
    registered boolean not null default false,
    balance_wei numeric(78) not null default 0,
    observed_at timestamptz
  )`.execute(db);
  await sql`create table account_turns (
    account_id text primary key,
    payer int4,
    turn int8 not null default 0,
    last_block int8 not null default 0
  )`.execute(db);
  await sql`create index account_turns_by_block on account_turns (last_block desc)`.execute(db);
}

async function submissions(db: Kysely<unknown>): Promise<void> {
  await sql`create table submissions (
    id text primary key,
    account_id text,
    kind text not null,
    state text not null check (state in ('reserved', 'signed', 'sent', 'mined', 'confirmed', 'failed', 'expired',
      'changed')),
    payer int4 not null references lanes,
    nonce int8,
    calldata text,
    tag text,
    gas_limit int8,
    to_payer int4,
    amount_wei numeric(78),
    idempotency_key text unique,
    billed boolean not null default false,
    cancelled boolean not null default false,
    instance_id text,
    request_id text,
    transaction_hash text,
    block_number int8,
    block_hash text,
    result jsonb,
    error jsonb,
    charged boolean not null default false,
    before jsonb,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    check (nonce is not null or state = 'failed')
  )`.execute(db);
  await sql`create unique index submissions_nonce on submissions (payer, nonce)`.execute(db);
  await sql`create index submissions_open on submissions (account_id)
    where state in ('reserved', 'signed', 'sent')`.execute(db);
  await sql`create index submissions_mined on submissions (block_number)
    where state not in ('reserved', 'signed', 'sent', 'confirmed')`.execute(db);
  await sql`create unique index submissions_one_top_up on submissions (to_payer)
    where state in ('reserved', 'signed', 'sent')`.execute(db);
}

async function attempts(db: Kysely<unknown>): Promise<void> {
  await sql`create table submission_attempts (
    hash text primary key,
    submission_id text not null references submissions on delete cascade,
    does text not null check (does in ('write', 'nothing')),
    raw text not null,
    max_fee numeric(78) not null,
    priority_fee numeric(78) not null,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index submission_attempts_by_submission on submission_attempts (submission_id)`.execute(db);
}
