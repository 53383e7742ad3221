import { sql, type Kysely } from "kysely";

/** When the processor reported a claim: a dispute reopened under its old id counts again. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table payment_claims add column told_at int8 not null default 0`.execute(db);
}
