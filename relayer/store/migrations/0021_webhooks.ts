import { sql, type Kysely, type RawBuilder } from "kysely";

/**
 * Webhooks, and the outbox of what they are told. Triggers fill it, in the transaction that stores the outcome itself
 * and for whatever statement stores it: no event can be lost, and none can exist without its outcome.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await tables(db);
  await enqueueing(db);
  await runsAndWrites(db);
  await money(db);
  await contractEvents(db);
}

async function tables(db: Kysely<unknown>): Promise<void> {
  await sql`create table webhooks (
    id text primary key,
    account_id text not null,
    url text,
    events jsonb not null,
    description text not null,
    state text not null default 'on' check (state in ('on', 'off')),
    off_reason text check ((off_reason is null) = (state = 'on')),
    succeeded_at timestamptz,
    failing_since timestamptz,
    asked_at timestamptz not null default now(),
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index webhooks_by_account on webhooks (account_id)`.execute(db);
  await sql`create table webhook_events (
    place int8 generated always as identity primary key,
    id text not null unique,
    account_id text not null,
    type text not null,
    -- json, not jsonb: a name may hold any character, U+0000 included, which jsonb refuses
    data json not null,
    created_at timestamptz not null default now()
  )`.execute(db);
  await sql`create index webhook_events_by_age on webhook_events (created_at)`.execute(db);
  await sql`create table webhook_deliveries (
    webhook_id text not null references webhooks on delete cascade,
    place int8 not null references webhook_events on delete cascade,
    state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
    attempts int4 not null default 0,
    due_at timestamptz not null default now(),
    attempted_at timestamptz,
    duration_ms int4,
    status int4,
    answer text,
    failure text,
    primary key (webhook_id, place)
  )`.execute(db);
  await sql`create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at, place)
    where state = 'pending'`.execute(db);
  await sql`create index webhook_deliveries_by_event on webhook_deliveries (place)`.execute(db);
  for (const table of ["webhook_events", "webhook_deliveries"])
    await sql`alter table ${sql.table(table)} set (autovacuum_vacuum_scale_factor = 0.01)`.execute(db);
}

async function enqueueing(db: Kysely<unknown>): Promise<void> {
  await sql`create function enqueue_webhook_event(account text, event_type text, event_data json) returns void
    language plpgsql as $$
    declare
      names text[] := array['*', split_part(event_type, '.', 1) || '.*', event_type];
      wanting text[];
      event int8;
    begin
      select array_agg(id) into wanting from webhooks
        where account_id = account and state = 'on' and events ?| names;
      if wanting is null then return; end if;
      insert into webhook_events (id, account_id, type, data)
        values ('msg_' || replace(gen_random_uuid()::text, '-', ''), account, event_type, event_data)
        returning place into event;
      -- Read again: a webhook that was deleted meanwhile gets nothing.
      insert into webhook_deliveries (webhook_id, place)
        select id, event from webhooks where id = any(wanting) order by id for key share;
    end $$`.execute(db);
}

async function runsAndWrites(db: Kysely<unknown>): Promise<void> {
  await sql`create function webhook_events_of_runs() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(
        account_id, case when outcome = 'succeeded' then 'run.succeeded' else 'run.failed' end,
        json_build_object('request_id', request_id, 'api_key_hash', key_id, 'action_ipfs_cid', cid,
          'outcome', outcome, 'duration_ms', duration_ms, 'cost_cents', cost_cents, 'pkps_used', pkps_used,
          'started_at', floor(extract(epoch from started_at))::int8, 'receipt_sha256', receipt_sha256))
      from added where exists (select from webhooks where webhooks.account_id = added.account_id)
      order by started_at, run_id;
      return null;
    end $$`.execute(db);
  await sql`create trigger webhook_events_of_runs after insert on run_records
    referencing new table as added for each statement execute function webhook_events_of_runs()`.execute(db);
  await sql`create function webhook_event_of_write() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(
        new.account_id, case when new.error is null then 'write.confirmed' else 'write.failed' end,
        json_strip_nulls(json_build_object('submission_id', new.id, 'kind', new.kind,
          'transaction_hash', hash, 'block_number', block_number, 'charged', new.charged,
          'result', new.result, 'error', new.error->>'code',
          'changed', case when new.before is not null then true end)))
      from transactions where id = new.transaction_id;
      return null;
    end $$`.execute(db);
  // After a reorg an outcome counts again only if it is another one than had been reported.
  await sql`create trigger webhook_event_of_write after update of state on writes for each row
    when (old.state in ('waiting', 'carried') and new.state in ('done', 'failed', 'abandoned')
      and (new.before is null or new.before->'result' is distinct from new.result
        or new.before->'error'->>'code' is distinct from new.error->>'code'))
    execute function webhook_event_of_write()`.execute(db);
}

async function money(db: Kysely<unknown>): Promise<void> {
  await sql`create function webhook_event_of_payment() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(new.account_id, 'payment.credited',
        json_build_object('payment_intent_id', new.reference, 'amount_cents', new.amount_cents));
      return null;
    end $$`.execute(db);
  await sql`create trigger webhook_event_of_payment after insert on ledger_entries for each row
    when (new.kind = 'top_up') execute function webhook_event_of_payment()`.execute(db);
  await sql`create function webhook_event_of_low_credit() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(new.account_id, 'credit.low',
        json_build_object('balance_cents', new.balance_cents, 'threshold_cents', 100));
      return null;
    end $$`.execute(db);
  await sql`create trigger webhook_event_of_low_credit after update of balance_cents on credit_accounts for each row
    when (old.balance_cents >= 100 and new.balance_cents < 100)
    execute function webhook_event_of_low_credit()`.execute(db);
}

/**
 * Expiries are remembered as the contract's events name them, and read from the text: an error here, such as JSON's
 * unescaping of a name with U+0000 or a number that fits no column, would stop the follower for every account.
 */
async function contractEvents(db: Kysely<unknown>): Promise<void> {
  await sql`create table key_expiries (
    key_id text not null,
    expires_at int8 not null,
    account_id text not null,
    noticed boolean not null default false,
    primary key (key_id, expires_at)
  )`.execute(db);
  await sql`create index key_expiries_to_come on key_expiries (expires_at) where not noticed`.execute(db);
  await sql`create function keep_key_expiries() returns trigger language plpgsql as $$
    begin
      ${keepExpiries("added where name = 'UsageApiKeySet' and not removed")}
      order by key_id, expires_at on conflict do nothing;
      return null;
    end $$`.execute(db);
  await sql`create trigger keep_key_expiries after insert on chain_events
    referencing new table as added for each statement execute function keep_key_expiries()`.execute(db);
  await sql`create function webhook_events_of_chain() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(
        account_id, 'account.' || lower(regexp_replace(name, '([a-z])([A-Z])', '\\1_\\2', 'g')),
        json_build_object('cursor', cursor::text, 'name', name, 'block_number', block_number,
          'transaction_hash', transaction_hash, 'log_index', log_index, 'removed', removed,
          'args', case when octet_length(args::text) <= 16384 then args end))
      from added where exists (select from webhooks where webhooks.account_id = added.account_id)
      order by cursor;
      -- Whoever controlled the account before learns nothing more about it.
      update webhooks set state = 'off', off_reason = 'owner_changed' where state = 'on' and account_id in (
        select account_id from added where not removed
          and name in ('AccountOwnershipTransferred', 'AccountConvertedToChainSecured'));
      return null;
    end $$`.execute(db);
  await sql`create trigger webhook_events_of_chain after insert on chain_events
    referencing new table as added for each statement execute function webhook_events_of_chain()`.execute(db);
  await sql`${keepExpiries("chain_events where name = 'UsageApiKeySet' and not removed and not retracted")}
    and expires_at::int8 > extract(epoch from now()) on conflict do nothing`.execute(db);
}

const keepExpiries = (events: string): RawBuilder<unknown> =>
  sql.raw(`insert into key_expiries (key_id, expires_at, account_id)
      select key_id, expires_at::int8, account_id from (
        select substring(args::text from '"keyId":"(0x[0-9a-f]{64})"') as key_id,
          substring(args::text from '"expiration":"([1-9][0-9]{0,11})"') as expires_at, account_id
        from ${events}
      ) as set where key_id is not null and expires_at is not null and account_id is not null`);
