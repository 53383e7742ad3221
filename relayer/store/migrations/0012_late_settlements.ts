import { sql, type Kysely } from "kysely";

/**
 * Marks reservations released because their instance was presumed dead: the run may have continued, and is then still
 * charged.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table credit_reservations add column given_back boolean not null default false`.execute(db);
  await sql`create index credit_reservations_late on credit_reservations (account_id)
    where given_back and state = 'settled'`.execute(db);
}
