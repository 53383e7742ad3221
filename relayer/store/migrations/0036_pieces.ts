import { sql, type Kysely } from "kysely";

/** What periodic work looks for, piece by piece, among millions: expiries that are past, webhooks nobody asks, code. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index key_expiries_by_time on key_expiries (expires_at)`.execute(db);
  await sql`create index webhooks_unasked on webhooks (asked_at) where url is null`.execute(db);
  await sql`create index shared_code_uses_by_age on shared_code_uses (used_at)`.execute(db);
  // All code is added up from this index alone.
  await sql`create index shared_code_by_bytes on shared_code (bytes)`.execute(db);
}
