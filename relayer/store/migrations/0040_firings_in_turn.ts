import { sql, type Kysely } from "kysely";

/**
 * An account's firings are claimed in the order in which they may be made: those that are to be tried again later are
 * behind all of them in the index. In the order of their due times each claim would read past them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index trigger_firings_waiting`.execute(db);
  await sql`create index trigger_firings_waiting on trigger_firings (account_id, not_before, due_at, id)
    where state = 'waiting'`.execute(db);
}
