import { sql, type Kysely } from "kysely";

/**
 * Whether an instance holds the session lock of its id, so that peers see at once when it dies. Older relayers hold
 * none: their lease decides.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table instances add column has_lock boolean not null default false`.execute(db);
}
