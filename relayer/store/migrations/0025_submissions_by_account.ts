import { sql, type Kysely } from "kysely";

/** An account's writes in the order of its export, newest first. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index submissions_by_account on submissions (account_id, created_at desc, id)
    where account_id is not null`.execute(db);
}
