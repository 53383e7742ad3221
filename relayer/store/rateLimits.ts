/** rate-limiter-flexible over the relayer's own store, so that several relayers share a budget. */
import { CompiledQuery, sql } from "kysely";
import { RateLimiterMemory, RateLimiterPostgres, type RateLimiterAbstract } from "rate-limiter-flexible";
import type { Db } from "./database";
import { AT_A_TIME } from "./pieces";

/** A limiter of `points` per `durationSeconds`. */
export type LimiterFactory = (name: string, points: number, durationSeconds: number) => RateLimiterAbstract;

interface Query {
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** The one method of a `pg` client that the limiter uses. */
const clientOf = (db: Db) => ({
  query: async ({ text, values = [] }: Query) => {
    const { rows } = await db.executeQuery(CompiledQuery.raw(text, [...values]));
    return { rows, rowCount: rows.length };
  },
});

export const memoryLimiter: LimiterFactory = (name, points, duration) =>
  new RateLimiterMemory({ keyPrefix: name, points, duration });

/** Budgets that must survive a database crash. */
export const storeLimiter = (db: Db): LimiterFactory => limiterIn(db, "rate_limits");

/** Windows of seconds, in an unlogged table: commits need no fsync, and a database crash resets the windows. */
export const fleetingLimiter = (db: Db): LimiterFactory => limiterIn(db, "fleeting_rates");

function limiterIn(db: Db, tableName: "rate_limits" | "fleeting_rates"): LimiterFactory {
  const storeClient = clientOf(db);
  return (keyPrefix, points, duration) =>
    // Over the limit, refuse from memory until the window ends.
    new RateLimiterPostgres({
      storeClient,
      storeType: "client",
      tableName,
      tableCreated: true,
      keyPrefix,
      points,
      duration,
      inMemoryBlockOnConsumed: points + 1,
      // It would do so in one statement, however many there are: `dropExpiredRates`.
      clearExpiredByTimeout: false,
    });
}

/** Clocks of relayers differ. */
const KEPT_MS = 60_000;

/** Windows that are over, in the order of their keys: an index of their ends would slow every request down. */
export async function dropExpiredRates(db: Db): Promise<void> {
  const before = Date.now() - KEPT_MS;
  for (const table of ["rate_limits", "fleeting_rates"] as const) {
    let after: string | null = "";
    while (after !== null) {
      const { rows }: { rows: { last: string | null }[] } = await sql<{ last: string | null }>`
        with page as materialized (
          select key from ${sql.table(table)} where key > ${after} order by key limit ${sql.lit(AT_A_TIME)}
        ), dropped as (
          delete from ${sql.table(table)} rates using page where rates.key = page.key and expire < ${before}::int8
        )
        select max(key) as last from page`.execute(db);
      after = rows[0]?.last ?? null;
    }
  }
}
