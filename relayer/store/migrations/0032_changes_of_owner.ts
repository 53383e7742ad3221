import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await ownersInTurn(db);
  await expiriesAskedAgain(db);
}

const OF_OWNERS = sql.raw("'AccountOwnershipTransferred', 'AccountConvertedToChainSecured'");

/**
 * Changes of owners wait for whoever changes webhooks, and switch off what they leave: they look for them under the
 * same lock (`relayer/webhooks/registry.ts`). It is one for all accounts: a block may change thousands of owners.
 */
async function ownersInTurn(db: Kysely<unknown>): Promise<void> {
  // Under that lock the last change of an account is looked for among all its events.
  await sql`create index chain_events_by_owned_account on chain_events (account_id, cursor)
    where owner is not null`.execute(db);
  await sql`create or replace function webhook_events_of_chain() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(
        account_id, 'account.' || lower(regexp_replace(name, '([a-z])([A-Z])', '\\1_\\2', 'g')),
        json_build_object('cursor', cursor::text, 'name', name, 'block_number', block_number,
          'transaction_hash', transaction_hash, 'log_index', log_index, 'removed', removed,
          'args', case when octet_length(args::text) <= 16384 then args end))
      from added where exists (select from webhooks where webhooks.account_id = added.account_id)
      order by cursor;
      -- Whoever controlled the account before learns nothing more about it.
      if exists (select from added where not removed and name in (${OF_OWNERS})) then
        perform pg_advisory_xact_lock(hashtext('webhooks'));
        update webhooks set state = 'off', off_reason = 'owner_changed' where state = 'on' and account_id in
          (select account_id from added where not removed and name in (${OF_OWNERS}));
      end if;
      return null;
    end $$`.execute(db);
}

/**
 * What the contract contradicts is asked again later instead of being forgotten: the endpoint may have been behind, or
 * on a branch that did not last. An event that says it again counts at once.
 */
async function expiriesAskedAgain(db: Kysely<unknown>): Promise<void> {
  await sql`alter table key_expiries add column ask_at timestamptz not null default now(),
    add column contradictions int4 not null default 0`.execute(db);
  await sql`create or replace function keep_key_expiries() returns trigger language plpgsql as $$
    begin
      insert into key_expiries (key_id, expires_at, account_id)
        select distinct on (key_id, expires_at) key_id, expires_at::int8, account_id from (
          select substring(args::text from '"keyId":"(0x[0-9a-f]{64})"') as key_id,
            substring(args::text from '"expiration":"([1-9][0-9]{0,11})"') as expires_at, account_id, cursor
          from added where name = 'UsageApiKeySet' and not removed
        ) as set where key_id is not null and expires_at is not null and account_id is not null
        order by key_id, expires_at, cursor desc
        on conflict (key_id, expires_at) do update set ask_at = now(), contradictions = 0,
          account_id = excluded.account_id,
          noticed = key_expiries.noticed and key_expiries.account_id = excluded.account_id;
      return null;
    end $$`.execute(db);
}
