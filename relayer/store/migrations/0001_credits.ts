import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await accounts(db);
  await ledger(db);
  await reservations(db);
  await payments(db);
}

async function accounts(db: Kysely<unknown>): Promise<void> {
  await sql`create table credit_accounts (
    account_id text primary key,
    balance_cents int8 not null default 0,
    reserved_cents int8 not null default 0 check (reserved_cents >= 0),
    email text,
    customer_id text unique
  )`.execute(db);
  await sql`create table key_spending (
    key_id text primary key,
    spent_cents int8 not null default 0 check (spent_cents >= 0),
    reserved_cents int8 not null default 0 check (reserved_cents >= 0)
  )`.execute(db);
  await sql`create table credit_settings (name text primary key, value jsonb not null)`.execute(db);
}

async function ledger(db: Kysely<unknown>): Promise<void> {
  await sql`create table ledger_entries (
    id int8 generated always as identity primary key,
    account_id text not null references credit_accounts,
    contra text not null check (contra in ('promotions', 'payments', 'revenue')),
    amount_cents int8 not null check (amount_cents <> 0),
    kind text not null,
    reference text not null,
    posting_key text not null unique,
    key_id text,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index ledger_entries_by_account on ledger_entries (account_id, id)`.execute(db);
  await sql`create index ledger_entries_by_kind on ledger_entries (kind, created_at)`.execute(db);
  await sql`create function refuse_ledger_change() returns trigger language plpgsql as
    $$ begin raise exception 'the ledger is append-only: correct it with a further entry'; end $$`.execute(db);
  // Both legs of every entry: over all books the totals sum to zero.
  await sql`create view ledger_postings as
    select id as entry_id, account_id as book, amount_cents, created_at from ledger_entries
    union all select id, contra, -amount_cents, created_at from ledger_entries`.execute(db);
  await sql`create trigger ledger_is_append_only before update or delete or truncate on ledger_entries
    for each statement execute function refuse_ledger_change()`.execute(db);
}

async function reservations(db: Kysely<unknown>): Promise<void> {
  await sql`create table credit_reservations (
    id text primary key,
    kind text not null check (kind in ('write', 'run')),
    account_id text not null references credit_accounts,
    key_id text,
    reserved_cents int8 not null check (reserved_cents >= 0),
    cost_cents int8 check (cost_cents between 0 and reserved_cents),
    state text not null default 'held' check (state in ('held', 'settled', 'released')),
    instance_id text not null,
    bound boolean not null default false,
    created_at timestamptz not null default now(),
    closed_at timestamptz
  )`.execute(db);
  await sql`create index credit_reservations_held on credit_reservations (instance_id) where state = 'held'`.execute(
    db,
  );
}

async function payments(db: Kysely<unknown>): Promise<void> {
  await sql`create table payments (
    intent_id text primary key,
    account_id text references credit_accounts,
    credited_cents int8 not null default 0 check (credited_cents >= 0),
    refunded_cents int8 not null default 0 check (refunded_cents >= 0),
    debited_cents int8 not null default 0 check (debited_cents between 0 and credited_cents),
    adjustments int8 not null default 0,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create table payment_claims (
    claim_id text primary key,
    kind text not null check (kind in ('refund', 'dispute')),
    intent_id text not null,
    amount_cents int8 not null check (amount_cents >= 0),
    withdrawn boolean not null
  )`.execute(db);
  await sql`create index payment_claims_by_intent on payment_claims (intent_id)`.execute(db);
  await sql`create table payment_attempts (
    account_id text not null references credit_accounts,
    attempt_key text not null,
    amount_cents int8 not null,
    intent_id text,
    created_at timestamptz not null default now(),
    primary key (account_id, attempt_key)
  )`.execute(db);
}
