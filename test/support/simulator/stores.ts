/** The stores that a history can run on: the double in memory, the embedded database, or both at once. */
import { Kysely, PostgresDialect, sql, type PostgresPool, type PostgresPoolClient } from "kysely";
import type { Database } from "../../../relayer/store/database";
import { MemoryStore, type Answer } from "../memoryStore";
import { openTestStore } from "../testStore";

export interface SimulatedStore {
  readonly db: Kysely<Database>;
  readonly pool: PostgresPool;
  /** Of the event loop. */
  readonly turnsOfStatement: number;
  /** As after its migrations: for the next history. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export async function memoryStore(): Promise<SimulatedStore> {
  const store = await MemoryStore.open();
  const reset = async (): Promise<void> => store.reset();
  return { db: store.db, pool: store.pool(), turnsOfStatement: 0, reset, close: async () => undefined };
}

/** The same store; `onStatement` is told what is asked of it. */
export function overheard(store: SimulatedStore, onStatement: (statement: string) => void): SimulatedStore {
  const connect = async (): Promise<PostgresPoolClient> => {
    const client = await store.pool.connect();
    const send = client.query.bind(client) as unknown as Query;
    const query: Query = (text, params = []) => {
      onStatement(`${text} ${JSON.stringify(params)}`);
      return send(text, params);
    };
    return { query: query as unknown as PostgresPoolClient["query"], release: () => client.release() };
  };
  return { ...store, pool: { connect, end: () => Promise.resolve() } };
}

const TABLES = [
  "writes",
  "attempts",
  "transactions",
  "lanes",
  "account_turns",
  "chain_events",
  "followed_blocks",
  "chain_settings",
  "instances",
  "idempotent_requests",
  "ledger_entries",
  "credit_reservations",
  "key_spending",
  "credit_accounts",
];

/** Executes each statement in the embedded database and in memory, and reports answers that differ. */
export async function bothStores(onDifference: (difference: string) => void): Promise<SimulatedStore> {
  let embedded: PostgresPool | undefined;
  const store = await openTestStore({ around: (pool) => (embedded = pool) });
  const memory = await MemoryStore.open();
  const pool = compared(embedded as PostgresPool, memory, onDifference);
  const reset = async (): Promise<void> => {
    // The ledger refuses deletions by a trigger.
    await sql`set session_replication_role = replica`.execute(store.db);
    for (const table of TABLES) await sql`delete from ${sql.table(table)}`.execute(store.db);
    await sql`set session_replication_role = origin`.execute(store.db);
    await sql`update chain_duties set instance_id = null`.execute(store.db);
    memory.reset();
  };
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  return { db, pool, turnsOfStatement: 1, reset, close: () => store.close() };
}

type Query = (text: string, params?: readonly unknown[]) => Promise<Answer>;

function compared(embedded: PostgresPool, memory: MemoryStore, onDifference: (text: string) => void): PostgresPool {
  const told = async (of: () => Answer | Promise<Answer>): Promise<{ answer?: Answer; error?: Error }> => {
    try {
      return { answer: await of() };
    } catch (error) {
      return { error: error as Error };
    }
  };
  const connect = async (): Promise<PostgresPoolClient> => {
    const client = await embedded.connect();
    const send = client.query.bind(client) as unknown as Query;
    const query: Query = async (text, params = []) => {
      const real = await told(() => send(text, params));
      const own = await told(() => memory.execute(text, params));
      const [a, b] = [plainly(real), plainly(own)];
      if (a !== b)
        onDifference(`${text}\n${JSON.stringify(params)}\nembedded: ${a}\nin memory: ${b} ${own.error?.stack ?? ""}`);
      if (real.error !== undefined) throw real.error;
      return real.answer as Answer;
    };
    return { query: query as unknown as PostgresPoolClient["query"], release: () => client.release() };
  };
  return { connect, end: () => Promise.resolve() };
}

/** Rows in any order, since few statements ask for one that leaves no ties. */
function plainly({ answer, error }: { readonly answer?: Answer; readonly error?: Error }): string {
  if (error !== undefined) return "an error";
  const rows = (answer?.rows ?? []).map((row) => JSON.stringify(canonical(row)));
  return `${answer?.rowCount ?? 0} ${rows.sort().join("\n")}`;
}

/** With the members of objects in one order: jsonb has one of its own. */
function canonical(value: unknown): unknown {
  if (value instanceof Date || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(canonical);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, canonical(member)]),
  );
}
