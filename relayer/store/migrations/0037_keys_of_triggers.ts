import { sql, type Kysely } from "kysely";

/**
 * Triggers whose keys nobody attaches are dropped in the end. Whether a trigger's key was set is looked for every
 * second, among all events of its account. The key is read from the text: JSON's operators fail at a name with U+0000.
 * As a function, because PostgreSQL calls the cast of JSON to text stable and indexes only what is immutable, which
 * this is.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create function key_in_args(args json) returns text language sql immutable as
    $$ select substring(args::text from '"keyId":"(0x[0-9a-f]{64})"') $$`.execute(db);
  await sql`create index chain_events_of_keys on chain_events (account_id, key_in_args(args))
    where name = 'UsageApiKeySet' and not removed and not retracted`.execute(db);
  await sql`create index triggers_unattached_by_age on triggers (created_at) where state = 'unattached'`.execute(db);
}
