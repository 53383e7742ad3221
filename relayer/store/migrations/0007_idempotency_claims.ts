import { sql, type Kysely } from "kysely";

/**
 * Identifies the current claim: each beginning and each takeover has its own, so that a late write of an earlier one
 * changes nothing.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table idempotent_requests add column claim_id text`.execute(db);
}
