import { sql, type Kysely } from "kysely";

/** An account's writes in the order of its export, newest first. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index writes_by_account on writes (account_id, created_at desc, id)`.execute(db);
}
