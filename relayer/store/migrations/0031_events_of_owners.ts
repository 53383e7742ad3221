import { sql, type Kysely } from "kysely";

/** Whether an owner's account was given to it is asked with each of its requests, however many others gave it one. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index chain_events_by_owner_and_account on chain_events (owner, account_id, cursor)
    where owner is not null`.execute(db);
  await sql`drop index chain_events_by_owner`.execute(db);
}
