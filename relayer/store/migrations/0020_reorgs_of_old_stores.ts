import { sql, type Kysely } from "kysely";

/** A reorg finds confirmed writes by block, and retention finds attempts by age, also those of no write. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index submissions_confirmed on submissions (block_number) where state = 'confirmed'`.execute(db);
  await sql`create index submission_attempts_by_age on submission_attempts (created_at)`.execute(db);
}
