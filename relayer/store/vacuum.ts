/**
 * The embedded database has no autovacuum: without this, every search of an index passes the remains of all rows that
 * ever were in it, and costs more each minute.
 */
import { sql } from "kysely";
import type { Db } from "./database";

/** Without an index, so every statement on it passes what earlier rows left: vacuumed more often than all others. */
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
