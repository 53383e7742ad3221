/**
 * The embedded database as a pool of one connection, in the shape Kysely's PostgreSQL dialect expects, so that one
 * dialect serves both stores. A transaction holds the connection; other callers queue. Waiting too long is an error
 * rather than a hang: either overload, or a query outside the transaction that its own caller has open (use the
 * transaction's handle there).
 */
import { join } from "node:path";
import { PGlite, types } from "@electric-sql/pglite";
import type { PostgresPoolClient } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import { lockFolder } from "./folderLock";
import type { MeasuredPool, PoolFigures } from "./pool";
import { PreparedStatements } from "./preparedStatements";
import { parseBytea, parseInt8 } from "./values";

const MAX_WAIT_MS = 20_000;

/** In memory, if no folder is given; `initial` is the archive of a database in memory to begin with. */
export async function openPglitePool(dataDir: string | undefined, initial?: Blob): Promise<MeasuredPool> {
  const unlock = dataDir === undefined ? undefined : await lockFolder(dataDir);
  const lite = await PGlite.create({
    ...(dataDir === undefined ? {} : { dataDir: join(dataDir, "pglite") }),
    ...(initial === undefined ? {} : { loadDataDir: initial }),
    parsers: { [types.INT8]: parseInt8, [types.BYTEA]: parseBytea },
  });
  // Statements are planned once, most of them over empty tables, where reading the whole table is the cheapest plan.
  await lite.exec("set enable_seqscan = off");
  const line = new WaitingLine();
  const client = clientOf(new PreparedStatements(lite), line);
  return {
    connect: async () => {
      await line.enter();
      return client;
    },
    end: async () => {
      await lite.close();
      await unlock?.();
    },
    figures: () => line.figures,
  };
}

/** One for all callers: the driver keeps what it knows of each client it meets. */
function clientOf(statements: PreparedStatements, line: WaitingLine): PostgresPoolClient {
  const query = (sql: string, parameters: readonly unknown[]): Promise<unknown> => statements.query(sql, parameters);
  return { query: query as PostgresPoolClient["query"], release: () => line.leave() };
}

/** First come, first served, one at a time. */
class WaitingLine {
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  get figures(): PoolFigures {
    return { busy: this.#busy ? 1 : 0, idle: this.#busy ? 0 : 1, waiting: this.#waiting.length };
  }

  async enter(): Promise<void> {
    if (this.#busy) await this.#turn();
    this.#busy = true;
  }

  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(
          new KeywrightError(
            "database_unavailable",
            "The embedded database is too busy; the same request may succeed later.",
            {},
            { retryAfterSeconds: 5 },
          ),
        );
      }, MAX_WAIT_MS);
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.push(enter);
    });
  }

  /** Hands the connection directly to the next in line, so that no later caller can overtake. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#busy = false;
    else next();
  }
}
