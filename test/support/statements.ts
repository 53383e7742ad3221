/** Notes the text of every statement that a store executes, and how many rows they looked at. */
import { sql, type PostgresPool } from "kysely";
import type { Db } from "../../relayer/store/database";

export const notingStatements =
  (seen: Set<string>) =>
  (pool: PostgresPool): PostgresPool => ({
    connect: async () => {
      const client = await pool.connect();
      const query = client.query as unknown as (text: string, values: readonly unknown[]) => Promise<unknown>;
      const noting = (text: string, values: readonly unknown[]): Promise<unknown> => (
        seen.add(text),
        query(text, values)
      );
      return { query: noting as unknown as typeof client.query, release: () => client.release() };
    },
    end: () => pool.end(),
  });

/**
 * Rows of triggers' firings that statements have looked at so far, as the database counts them. On a PostgreSQL with
 * several connections those of some of them come later.
 */
export async function firingsRead(db: Db): Promise<number> {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<{ read: number }>`
    select (seq_tup_read + idx_tup_fetch)::float8 as read from pg_stat_user_tables
    where relname = 'trigger_firings'`.execute(db);
  return rows[0]?.read ?? 0;
}
