/**
 * The relayer's store: embedded PGlite for development, PostgreSQL beyond. One schema, one dialect, one set of migrations.
 * PGlite survives a kill of the process but does not fsync, so production takes PostgreSQL (relayer/config.ts refuses to start without).
 */
import { Kysely, Migrator, PostgresDialect, type PostgresPool } from "kysely";
import type { Database } from "./database";
import { MIGRATIONS } from "./migrations/index";
import { openPglitePool } from "./pglitePool";
import { openPostgresPool } from "./postgresPool";

export interface StoreOptions {
  /** A PostgreSQL connection string; without it the embedded database is used. */
  readonly databaseUrl?: string | undefined;
  /** Folder of the embedded database; without it everything is in memory and gone with the process. */
  readonly dataDir?: string | undefined;
  readonly maxConnections?: number | undefined;
  readonly onIdleError?: ((error: Error) => void) | undefined;
  /** Stands between the relayer and its connections: the seam at which tests make statements fail. */
  readonly around?: ((pool: PostgresPool) => PostgresPool) | undefined;
}

export interface Store {
  readonly db: Kysely<Database>;
  readonly kind: "pglite" | "postgres";
  close(): Promise<void>;
}

/** Opens the store and brings its schema up to date. Several relayers may do so at once on one PostgreSQL. */
export async function openStore(options: StoreOptions = {}): Promise<Store> {
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: await openPool(options) }) });
  try {
    await migrate(db);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return { db, kind: options.databaseUrl === undefined ? "pglite" : "postgres", close: () => db.destroy() };
}

async function openPool(options: StoreOptions): Promise<PostgresPool> {
  const { databaseUrl, dataDir, maxConnections = 20, onIdleError = () => undefined, around = (pool) => pool } = options;
  return around(databaseUrl === undefined ? await openPglitePool(dataDir) : openPostgresPool({ databaseUrl, maxConnections, onIdleError }));
}

async function migrate(db: Kysely<Database>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve({ ...MIGRATIONS }) } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
