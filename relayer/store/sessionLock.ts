/**
 * Lets relayers on one PostgreSQL detect a dead peer on any machine without waiting for its lease: each holds an
 * advisory lock for the lifetime of one connection. However a process ends, its connection closes and the database
 * releases the lock.
 */
import { sql } from "kysely";
import { Client } from "pg";
import type { Db } from "./database";

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 5_000;

export class SessionLock {
  #client: Client | undefined;
  #taking: Promise<boolean> | undefined;
  #isClosed = false;
  readonly #databaseUrl: string;
  readonly #name: string;
  readonly #onLost: () => void;

  /** `onLost`: the connection broke; `hold` takes the lock again. */
  constructor(databaseUrl: string, name: string, onLost: () => void) {
    this.#databaseUrl = databaseUrl;
    this.#name = name;
    this.#onLost = onLost;
  }

  /**
   * Takes the lock unless already held. False where the session does not keep its locks, as behind a transaction
   * pooler.
   */
  hold(): Promise<boolean> {
    return (this.#taking ??= this.#take().finally(() => (this.#taking = undefined)));
  }

  async #take(): Promise<boolean> {
    const client = (this.#client ??= await this.#connect());
    try {
      if (!(await this.#isHeldBy(client)))
        await client.query("select pg_try_advisory_lock(hashtextextended($1, 0))", [this.#name]);
      return await this.#isHeldBy(client);
    } catch (error) {
      this.#drop(client);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.#databaseUrl,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: STATEMENT_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
    await client.connect();
    return client;
  }

  #drop(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    void client.end().catch(() => undefined);
    if (!this.#isClosed) this.#onLost();
  }

  async #isHeldBy(client: Client): Promise<boolean> {
    const { rows } = await client.query<{ held: boolean }>(
      `select exists (select from pg_locks where locktype = 'advisory' and granted and pid = pg_backend_pid()
        and (classid::int8 << 32 | objid::int8) = hashtextextended($1, 0)) as held`,
      [this.#name],
    );
    return rows[0]?.held === true;
  }
}

/** Whether no session holds the lock of this name. */
export async function isLockFree(db: Db, name: string): Promise<boolean> {
  const { rows } = await sql<{
    free: boolean;
  }>`select pg_try_advisory_xact_lock(hashtextextended(${name}, 0)) as free`.execute(db);
  return rows[0]?.free === true;
}
