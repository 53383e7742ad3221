/** Notes the text of every statement that a store executes. */
import type { PostgresPool } from "kysely";

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
