import { sql, type Kysely } from "kysely";

/** Drops an unused index that every insert updated: searches by instance use the index of unbound reservations. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index credit_reservations_held`.execute(db);
}
