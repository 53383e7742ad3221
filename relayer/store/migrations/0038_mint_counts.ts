import { sql, type Kysely } from "kysely";

/** Uses of the budget of new accounts and keys: of all, and of each network by a hash. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table mint_counts (name text primary key, points float8 not null,
    counted_at timestamptz not null)`.execute(db);
}
