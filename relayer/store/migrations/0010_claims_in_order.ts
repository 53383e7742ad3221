import { sql, type Kysely } from "kysely";

/** When the processor told of a claim: a dispute that is opened anew under its old id counts again. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table payment_claims add column told_at int8 not null default 0`.execute(db);
}
