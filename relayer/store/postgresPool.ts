/** PostgreSQL: pg's pool with explicit time-outs and connection errors mapped to this service's error codes. */
import type { PostgresPoolClient } from "kysely";
import { Pool, TypeOverrides, types, type PoolClient, type QueryConfig } from "pg";
import type { MeasuredPool } from "./pool";
import { isStalePlan, StatementNames } from "./statementNames";
import { translateUnavailable } from "./unavailable";
import { parseInt8 } from "./values";
import { defined } from "../../protocol/defined";

export interface PostgresPoolOptions {
  readonly databaseUrl: string;
  readonly maxConnections: number;
  /** Statements may take as long as they need once they have their locks: those of migrations. Default false. */
  readonly isPatient?: boolean;
  /** Receives errors of idle connections; the pool replaces them itself. */
  readonly onIdleError: (error: Error) => void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 15_000;
/** The client's own time-out, for a server that no longer responds. */
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
const TIMEOUTS = {
  statement_timeout: STATEMENT_TIMEOUT_MS,
  query_timeout: QUERY_TIMEOUT_MS,
  lock_timeout: 10_000,
  idle_in_transaction_session_timeout: 30_000,
};

export function openPostgresPool(options: PostgresPoolOptions): MeasuredPool {
  const overrides = new TypeOverrides(types);
  overrides.setTypeParser(types.builtins.INT8, parseInt8);
  const pool = new Pool({
    connectionString: options.databaseUrl,
    max: options.maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    ...(options.isPatient === true ? { lock_timeout: TIMEOUTS.lock_timeout } : TIMEOUTS),
    keepAlive: true,
    // `begin` and the transaction's first statement are sent in one round trip.
    pipeline: true,
    types: overrides,
  });
  pool.on("error", options.onIdleError);
  const names = new StatementNames();
  return {
    connect: async () => clientOf(await named(pool.connect()), names),
    end: () => pool.end(),
    figures: () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  };
}

function clientOf(client: PoolClient, names: StatementNames): PostgresPoolClient {
  const connection = new Connection(client, names);
  return {
    query: connection.query.bind(connection) as PostgresPoolClient["query"],
    release: () => connection.release(),
  };
}

class Connection {
  #isBroken = false;
  #isInTransaction = false;
  /** The pending `begin`. */
  #beginning: Promise<unknown> | undefined;
  readonly #client: PoolClient;
  readonly #names: StatementNames;

  constructor(client: PoolClient, names: StatementNames) {
    this.#client = client;
    this.#names = names;
    client.on("error", this.#onError);
  }

  /** The current query fails with the same error; without a listener the event would also end the process. */
  readonly #onError = (): void => void (this.#isBroken = true);

  async query(text: string, parameters: readonly unknown[]): Promise<unknown> {
    if (text === "begin") return this.#begin();
    try {
      const answers = await Promise.all([this.#send(text, parameters), this.#beginning]);
      if (text === "commit" || text === "rollback") this.#isInTransaction = false;
      return answers[0];
    } catch (error) {
      const translated = translateUnavailable(error);
      this.#isBroken ||= translated !== error && !isStalePlan(error);
      throw translated;
    } finally {
      this.#beginning = undefined;
    }
  }

  /** Sent without waiting: the next statement is awaited together with it. */
  #begin(): object {
    this.#isInTransaction = true;
    this.#beginning = this.#client.query("begin");
    this.#beginning.catch(() => undefined);
    return { command: "BEGIN", rowCount: null, rows: [] };
  }

  async #send(text: string, parameters: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#client.query(this.#named(text, parameters));
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      this.#names.forget();
      if (this.#isInTransaction) throw error;
      return this.#client.query(this.#named(text, parameters));
    }
  }

  #named(text: string, parameters: readonly unknown[]): QueryConfig {
    const name = parameters.length === 0 ? undefined : this.#names.of(text);
    return { text, values: [...parameters], ...defined({ name }) };
  }

  release(): void {
    this.#client.off("error", this.#onError);
    // A connection in an unknown state is discarded instead of reused.
    this.#client.release(this.#isBroken);
  }
}

async function named<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw translateUnavailable(error);
  }
}
