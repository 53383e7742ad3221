/** PostgreSQL: pg's own pool with explicit time-outs, and its connection errors under our name. */
import type { PostgresPoolClient } from "kysely";
import { Pool, TypeOverrides, types, type PoolClient } from "pg";
import type { MeasuredPool } from "./pool";
import { translateUnavailable } from "./unavailable";
import { parseInt8 } from "./values";

export interface PostgresPoolOptions {
  readonly databaseUrl: string;
  readonly maxConnections: number;
  /** Told of a connection that broke while nobody used it; the pool replaces it by itself. */
  readonly onIdleError: (error: Error) => void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** The client's own patience, for a server that says nothing at all any more. */
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
const LOCK_TIMEOUT_MS = 10_000;
const IDLE_TRANSACTION_TIMEOUT_MS = 30_000;

export function openPostgresPool(options: PostgresPoolOptions): MeasuredPool {
  const overrides = new TypeOverrides(types);
  overrides.setTypeParser(types.builtins.INT8, parseInt8);
  const pool = new Pool({
    connectionString: options.databaseUrl,
    max: options.maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    types: overrides,
  });
  pool.on("error", options.onIdleError);
  return {
    connect: async () => clientOf(await named(pool.connect())),
    end: () => pool.end(),
    figures: () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  };
}

function clientOf(client: PoolClient): PostgresPoolClient {
  const broken = { is: false };
  // The query under way fails with the same error; without a listener here it would end the process besides.
  const onError = (): void => void (broken.is = true);
  client.on("error", onError);
  const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    try {
      return await client.query(sql, [...parameters]);
    } catch (error) {
      const translated = translateUnavailable(error);
      broken.is ||= translated !== error;
      throw translated;
    }
  };
  const release = (): void => {
    client.off("error", onError);
    // A connection whose state is unknown is thrown away, not handed to the next.
    client.release(broken.is);
  };
  return { query: query as PostgresPoolClient["query"], release };
}

async function named<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw translateUnavailable(error);
  }
}
