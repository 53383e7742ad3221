/** The whole schema of the first release. From here on it grows by further migrations only. */
import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await instances(db);
  await creditAccounts(db);
  await ledger(db);
  await reservations(db);
  await payments(db);
  await chain(db);
  await transactions(db);
  await writes(db);
  await events(db);
  await requests(db);
  await runs(db);
  await code(db);
}

/** `place`: where it runs. `has_lock`: peers see its death at once (sessionLock.ts), otherwise its lease decides. */
async function instances(db: Kysely<unknown>): Promise<void> {
  await sql`create table instances (
    id text primary key,
    renewed_at timestamptz not null default now(),
    place text,
    has_lock boolean not null default false
  )`.execute(db);
}

async function creditAccounts(db: Kysely<unknown>): Promise<void> {
  await sql`create table credit_accounts (
    account_id text primary key,
    balance_cents int8 not null default 0,
    reserved_cents int8 not null default 0 check (reserved_cents >= 0),
    email text,
    customer_id text unique,
    entries int8 not null default 0
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
    contra text not null check (contra in ('promotions', 'payments', 'revenue', 'corrections')),
    amount_cents int8 not null check (amount_cents <> 0),
    kind text not null,
    reference text not null,
    posting_key text not null unique,
    key_id text,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index ledger_entries_by_account on ledger_entries (account_id, id)`.execute(db);
  await sql`create index ledger_entries_by_kind on ledger_entries (kind, created_at)`.execute(db);
  await sql`create index ledger_entries_by_key on ledger_entries (key_id) where key_id is not null`.execute(db);
  await sql`create function refuse_ledger_change() returns trigger language plpgsql as
    $$ begin raise exception 'the ledger is append-only: correct it with a further entry'; end $$`.execute(db);
  // Both legs of every entry: over all books the totals sum to zero.
  await sql`create view ledger_postings as
    select id as entry_id, account_id as book, amount_cents, created_at from ledger_entries
    union all select id, contra, -amount_cents, created_at from ledger_entries`.execute(db);
  await sql`create trigger ledger_is_append_only before update or delete or truncate on ledger_entries
    for each statement execute function refuse_ledger_change()`.execute(db);
}

/** `given_back`: released because its instance was presumed dead; the run may have continued, and is then charged. */
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
    closed_at timestamptz,
    given_back boolean not null default false
  ) with (${MANY_UPDATES})`.execute(db);
  await sql`create index credit_reservations_unbound on credit_reservations (instance_id)
    where state = 'held' and not bound`.execute(db);
  await sql`create index credit_reservations_closed on credit_reservations (closed_at) where state <> 'held'`.execute(
    db,
  );
  await sql`create index credit_reservations_open_by_account on credit_reservations (account_id)
    where state = 'held'`.execute(db);
  await sql`create index credit_reservations_late on credit_reservations (account_id)
    where given_back and state = 'settled'`.execute(db);
}

/** Rows that change several times each: without this, searches pass the remains of a fifth of the table. */
const MANY_UPDATES = sql`autovacuum_vacuum_scale_factor = 0.01`;

/** `told_at`: when the processor reported the claim, so that a dispute reopened under its old id counts again. */
async function payments(db: Kysely<unknown>): Promise<void> {
  await sql`create table payments (
    intent_id text primary key,
    account_id text references credit_accounts,
    credited_cents int8 not null default 0 check (credited_cents >= 0),
    refunded_cents int8 not null default 0 check (refunded_cents >= 0),
    debited_cents int8 not null default 0 check (debited_cents between 0 and credited_cents),
    adjustments int8 not null default 0,
    created_at timestamptz not null default now(),
    receipt_url text
  )`.execute(db);
  await sql`create table payment_claims (
    claim_id text primary key,
    kind text not null check (kind in ('refund', 'dispute')),
    intent_id text not null,
    amount_cents int8 not null check (amount_cents >= 0),
    withdrawn boolean not null,
    told_at int8 not null default 0
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

async function chain(db: Kysely<unknown>): Promise<void> {
  await sql`create table chain_duties (name text primary key, instance_id text)`.execute(db);
  await sql`insert into chain_duties (name) values ('keep_lanes'), ('follow_events')`.execute(db);
  await sql`create table chain_settings (name text primary key, value jsonb not null)`.execute(db);
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

/** A transaction is a nonce of a payer; all its attempts have that nonce. */
async function transactions(db: Kysely<unknown>): Promise<void> {
  await sql`create table transactions (
    id text primary key,
    payer int4 not null references lanes,
    nonce int8,
    purpose text not null check (purpose in ('writes', 'noop', 'top_up')),
    state text not null check (state in ('reserved', 'signed', 'pending', 'mined', 'confirmed', 'displaced',
      'dropped')),
    gas_limit int8 not null,
    to_payer int4,
    amount_wei numeric(78),
    abandon boolean not null default false,
    instance_id text,
    request_id text,
    hash text,
    block_number int8,
    block_hash text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    check ((nonce is null) = (state = 'dropped'))
  ) with (${MANY_UPDATES})`.execute(db);
  await sql`create unique index transactions_nonce on transactions (payer, nonce) where nonce is not null`.execute(db);
  await sql`create unique index transactions_one_top_up on transactions (to_payer)
    where to_payer is not null and state in ('reserved', 'signed', 'pending')`.execute(db);
  await sql`create index transactions_open on transactions (payer, nonce)
    where state in ('reserved', 'signed', 'pending')`.execute(db);
  await sql`create index transactions_mined on transactions (block_number) where state = 'mined'`.execute(db);
  await sql`create index transactions_confirmed on transactions (block_number) where state = 'confirmed'`.execute(db);
  await sql`create table attempts (
    hash text primary key,
    transaction_id text not null references transactions on delete cascade,
    is_noop boolean not null,
    raw text not null,
    max_fee numeric(78) not null,
    priority_fee numeric(78) not null,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index attempts_by_transaction on attempts (transaction_id)`.execute(db);
  await sql`create index attempts_by_age on attempts (created_at)`.execute(db);
}

/** A write is what an account asked for. Its transaction may fail with others' and leave it waiting for another one. */
async function writes(db: Kysely<unknown>): Promise<void> {
  await sql`create table writes (
    id text primary key,
    account_id text not null,
    kind text not null,
    state text not null check (state in ('waiting', 'carried', 'done', 'failed', 'abandoned')),
    transaction_id text not null references transactions,
    place int4 not null,
    calldata text,
    tag text,
    signer text,
    idempotency_key text unique,
    billed boolean not null,
    request_id text,
    result jsonb,
    error jsonb,
    charged boolean not null default false,
    before jsonb,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  ) with (${MANY_UPDATES})`.execute(db);
  await sql`create index writes_by_transaction on writes (transaction_id, place)`.execute(db);
  await sql`create index writes_open on writes (account_id) where state in ('waiting', 'carried')`.execute(db);
  await sql`create index writes_open_by_signer on writes (signer)
    where signer is not null and state in ('waiting', 'carried')`.execute(db);
  await sql`create index writes_with_bytes on writes (updated_at)
    where calldata is not null and state in ('done', 'failed', 'abandoned')`.execute(db);
}

async function events(db: Kysely<unknown>): Promise<void> {
  await sql`create table followed_blocks (number int8 primary key, hash text not null)`.execute(db);
  await sql`create table chain_events (
    cursor int8 generated always as identity primary key,
    account_id text,
    name text not null,
    block_number int8 not null,
    block_hash text not null,
    transaction_hash text not null,
    log_index int4 not null,
    -- json, not jsonb: a name may hold any character, U+0000 and half surrogates included, which jsonb refuses
    args json not null,
    owner text,
    removed boolean not null default false,
    retracted boolean not null default false
  )`.execute(db);
  await sql`create index chain_events_by_account on chain_events (account_id, cursor)`.execute(db);
  await sql`create index chain_events_by_block on chain_events (block_number)
    where not removed and not retracted`.execute(db);
  await sql`create index chain_events_by_owner on chain_events (owner, cursor) where owner is not null`.execute(db);
  await sql`create unique index chain_events_once on chain_events (block_hash, log_index)
    where not removed and not retracted`.execute(db);
}

/** `claim_id` identifies the current claim, so that a late write of an earlier one changes nothing. */
async function requests(db: Kysely<unknown>): Promise<void> {
  await sql`create table idempotent_requests (
    scope text not null,
    key text not null,
    body_hash text not null,
    state text not null check (state in ('running', 'open', 'done')),
    instance_id text not null,
    attempt_id text not null,
    status int4,
    answer json,
    created_at timestamptz not null default now(),
    claim_id text,
    primary key (scope, key),
    check ((state = 'done') = (status is not null))
  ) with (${MANY_UPDATES})`.execute(db);
  await sql`create index idempotent_requests_by_age on idempotent_requests (created_at)`.execute(db);
  await sql`create table rate_limits (key varchar(255) primary key, points integer not null default 0,
    expire bigint)`.execute(db);
  await sql`create unlogged table fleeting_rates (key varchar(255) primary key, points integer not null default 0,
    expire bigint)`.execute(db);
}

/**
 * Ends of runs are stored by the statement that closes the run, without an index, so that an insert is cheap. They
 * become records and totals in batches.
 */
async function runs(db: Kysely<unknown>): Promise<void> {
  await sql`create table run_ends (
    place int8 not null generated always as identity,
    run_id text not null,
    account_id text not null,
    key_id text not null,
    action_hash text not null,
    cid text not null,
    outcome text not null,
    request_id text not null,
    duration_ms float8 not null,
    cost_cents int8 not null,
    pkps_used jsonb not null,
    started_at timestamptz not null,
    receipt_sha256 text not null default ''
  )`.execute(db);
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
    started_at timestamptz not null,
    receipt_sha256 text not null default ''
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
  await runTotals(db);
}

async function runTotals(db: Kysely<unknown>): Promise<void> {
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

/** Code by CID for all machines, and the accounts that use it, towards whose quota it counts. */
async function code(db: Kysely<unknown>): Promise<void> {
  await sql`create table known_cids (action_hash text primary key, cid text not null)`.execute(db);
  await sql`create table shared_code (
    cid text primary key, code bytea not null, bytes int8 not null, touched_at timestamptz not null default now()
  )`.execute(db);
  await sql`create table shared_code_uses (
    account_id text not null, cid text not null references shared_code (cid) on delete cascade, bytes int8 not null,
    used_at timestamptz not null default now(), primary key (account_id, cid)
  )`.execute(db);
  await sql`create index shared_code_uses_by_cid on shared_code_uses (cid)`.execute(db);
}
