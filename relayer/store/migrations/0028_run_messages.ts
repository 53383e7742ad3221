import { sql, type Kysely } from "kysely";

/** Messages of failed runs, for a while; the index finds those that are to be forgotten. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table run_ends add column error_message text`.execute(db);
  await sql`alter table run_records add column error_message text`.execute(db);
  await sql`create index run_records_with_message on run_records (started_at) where error_message is not null`.execute(
    db,
  );
}
