/** rate-limiter-flexible over the relayer's own store, so that several relayers share a budget. */
import { CompiledQuery } from "kysely";
import { RateLimiterPostgres, type RateLimiterAbstract } from "rate-limiter-flexible";
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

export function storeLimiter(db: Db): LimiterFactory {
  const storeClient = clientOf(db);
  return (keyPrefix, points, duration) =>
    new RateLimiterPostgres({ storeClient, storeType: "client", tableName: "rate_limits", tableCreated: true, keyPrefix, points, duration });
}
