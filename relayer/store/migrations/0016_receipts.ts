import { sql, type Kysely } from "kysely";

/** URL of the processor's receipt for a payment. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table payments add column receipt_url text`.execute(db);
}
