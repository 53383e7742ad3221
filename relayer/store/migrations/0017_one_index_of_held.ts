import { sql, type Kysely } from "kysely";

/** Every search by instance is for unbound reservations, which have an index; each reservation paid for both. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index credit_reservations_held`.execute(db);
}
