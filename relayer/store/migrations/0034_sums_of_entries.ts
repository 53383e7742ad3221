import { sql, type Kysely } from "kysely";

/** The audit adds up an account's entries, and a page of its history passes over thousands, from the index alone. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index ledger_entries_by_account`.execute(db);
  await sql`create index ledger_entries_by_account on ledger_entries (account_id, id) include (amount_cents)`.execute(
    db,
  );
}
