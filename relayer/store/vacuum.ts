/**
 * The embedded database has no autovacuum: dead index entries accumulate, and every search gets slower.
 */
import { sql } from "kysely";
import type { Db } from "./database";

/** Has no index, so dead rows slow every statement: vacuumed most often. */
export const QUEUE_OF_RUN_ENDS = "run_ends";

/** All tables, or only the given ones. One at a time, so that other statements get the connection in between. */
export async function vacuumTables(db: Db, only?: readonly string[]): Promise<void> {
  for (const name of only ?? (await allTables(db))) await sql`vacuum ${sql.table(name)}`.execute(db);
}

async function allTables(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`.execute(db);
  return rows.map(({ name }) => name);
}
