import { sql, type Kysely } from "kysely";

/** Who is at a request now: each beginning and each takeover has a claim of its own, so that a late word of an earlier one changes nothing. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table idempotent_requests add column claim_id text`.execute(db);
}
