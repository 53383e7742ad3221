/**
 * The relayer's store: embedded PGlite for development, PostgreSQL otherwise. One schema, one dialect, one set of
 * migrations.
 * PGlite survives a kill of the process but does not fsync, so production requires PostgreSQL (relayer/config.ts
 * refuses to start without it).
 */
import { setImmediate } from "node:timers/promises";
import { Kysely, Migrator, PostgresDialect, sql, type PostgresPool } from "kysely";
import type { Database } from "./database";
import { MIGRATIONS } from "./migrations/index";
import { openPglitePool } from "./pglitePool";
import type { MeasuredPool, PoolFigures } from "./pool";
import { openPostgresPool } from "./postgresPool";
import { SessionLock } from "./sessionLock";

export interface StoreOptions {
  /** A PostgreSQL connection string; without it the embedded database is used. */
  readonly databaseUrl?: string | undefined;
  /** Folder of the embedded database; without it everything is in memory and lost with the process. */
  readonly dataDir?: string | undefined;
  /** The archive of a new embedded database, with which one in memory opens sooner. */
  readonly initial?: Blob | undefined;
  readonly maxConnections?: number | undefined;
  readonly onIdleError?: ((error: Error) => void) | undefined;
  /**
   * `asItIs`: no migration, and a store with missing migrations is refused; for tools run beside the relayers. Default
   * `upToDate`.
   */
  readonly schema?: "upToDate" | "asItIs" | undefined;
  /** Wraps the connection pool: tests use it to make statements fail. */
  readonly around?: ((pool: PostgresPool) => PostgresPool) | undefined;
}

export interface Store {
  readonly db: Kysely<Database>;
  readonly kind: "pglite" | "postgres";
  /** A lock that ends with this process; absent on the embedded store, which only one process uses. */
  readonly lockOf: ((name: string, onLost: () => void) => SessionLock) | undefined;
  /**
   * Frees what updated and deleted rows left: without it, every search of an index passes the remains of all rows that
   * ever were in it. Absent on PostgreSQL, which does so by itself.
   */
  readonly vacuum: (() => Promise<void>) | undefined;
  pool(): PoolFigures;
  close(): Promise<void>;
}

/** Opens the store and migrates its schema. Several relayers may do so concurrently on one PostgreSQL. */
export async function openStore(options: StoreOptions = {}): Promise<Store> {
  const { around = (pool: PostgresPool) => pool, schema = "upToDate" } = options;
  const pool = await openPool(options);
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: around(pool) }) });
  try {
    const missing = await missingMigrations(db);
    if (missing.length > 0 && schema === "asItIs")
      throw new Error(`The store lacks ${missing.join(", ")}: start a relayer of this version first.`);
    if (missing.length > 0) await migrate(db, options);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  const { databaseUrl } = options;
  const own = { db, pool: () => pool.figures(), close: () => db.destroy() };
  if (databaseUrl === undefined) return { ...own, kind: "pglite", lockOf: undefined, vacuum: () => vacuumTables(db) };
  const lockOf = (name: string, onLost: () => void): SessionLock => new SessionLock(databaseUrl, name, onLost);
  return { ...own, kind: "postgres", lockOf, vacuum: undefined };
}

async function openPool({
  databaseUrl,
  dataDir,
  initial,
  maxConnections = 20,
  onIdleError = () => undefined,
}: StoreOptions): Promise<MeasuredPool> {
  return databaseUrl === undefined
    ? openPglitePool(dataDir, initial)
    : openPostgresPool({ databaseUrl, maxConnections, onIdleError });
}

/**
 * The store may list further migrations, of a newer relayer. Migrations only add, so this version works beside it and
 * leaves the schema as it is.
 */
async function missingMigrations(db: Kysely<Database>): Promise<readonly string[]> {
  const { rows: tables } = await sql<{
    there: boolean;
  }>`select to_regclass('kysely_migration') is not null as there`.execute(db);
  const { rows: done } =
    tables[0]?.there === true
      ? await sql<{ name: string }>`select name from kysely_migration`.execute(db)
      : { rows: [] };
  const executed = new Set(done.map(({ name }) => name));
  return Object.keys(MIGRATIONS).filter((name) => !executed.has(name));
}

/** On PostgreSQL with connections of its own: an index of millions of rows takes longer than statements may. */
async function migrate(
  db: Kysely<Database>,
  { databaseUrl, onIdleError = () => undefined }: StoreOptions,
): Promise<void> {
  const own =
    databaseUrl === undefined
      ? undefined
      : new Kysely<Database>({
          dialect: new PostgresDialect({
            pool: openPostgresPool({ databaseUrl, maxConnections: 2, isPatient: true, onIdleError }),
          }),
        });
  const provider = { getMigrations: () => Promise.resolve({ ...MIGRATIONS }) };
  const { error } = await new Migrator({ db: own ?? db, provider }).migrateToLatest();
  await own?.destroy();
  if (error !== undefined) throw error;
}

/** One table at a time: it works on this thread, and serves the requests that have come meanwhile in between. */
async function vacuumTables(db: Kysely<Database>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`.execute(db);
  for (const { name } of rows) {
    await sql`vacuum ${sql.table(name)}`.execute(db);
    await setImmediate();
  }
}
