import { sql, type Kysely } from "kysely";

/** Of the many triggers that are due in one minute, some of each account come first: one step in the index for each. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index triggers_due`.execute(db);
  await sql`create index triggers_due on triggers (next_due, account_id) where state = 'active'`.execute(db);
}
