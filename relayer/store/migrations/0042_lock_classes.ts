import { sql, type Kysely } from "kysely";

const OF_OWNERS = sql.raw("'AccountOwnershipTransferred', 'AccountConvertedToChainSecured'");

/**
 * A change of owner takes the lock of `relayer/store/locks.ts`, and first the one that relayers before this migration
 * share: else a former owner could switch a receiver on through one of those in the moment of the change. A later
 * migration leaves that out.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
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
        perform pg_advisory_xact_lock(7315004, 0);
        update webhooks set state = 'off', off_reason = 'owner_changed' where state = 'on' and account_id in
          (select account_id from added where not removed and name in (${OF_OWNERS}));
      end if;
      return null;
    end $$`.execute(db);
}
