/**
 * The embedded database has no autovacuum: without this, every search of an index passes the remains of all rows that
 * ever were in it, and costs more each minute.
 */
import { sql } from "kysely";
import type { Db } from "./database";

/** One table at a time, so that other statements get the connection in between. */
export async function vacuumTables(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`.execute(db);
  for (const { name } of rows) await sql`vacuum ${sql.table(name)}`.execute(db);
}
