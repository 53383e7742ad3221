/** rate-limiter-flexible over the relayer's own store, so that several relayers share a budget. */
import { CompiledQuery } from "kysely";
import { RateLimiterMemory, RateLimiterPostgres, type RateLimiterAbstract } from "rate-limiter-flexible";
import type { Db } from "./database";

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
    });
}
