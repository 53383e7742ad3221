import { sql, type Kysely } from "kysely";

/** Which receipt a run has, so that an auditor can match receipts with records. Empty for older runs. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table run_ends add column receipt_sha256 text not null default ''`.execute(db);
  await sql`alter table run_records add column receipt_sha256 text not null default ''`.execute(db);
}
