/**
 * The relayer's store in memory, for histories by the thousand: a small database that executes the relayer's own
 * statements, on tables made by its own migrations. One connection, as the embedded store has. It knows no locks, plans
 * or triggers; what it does not know of SQL it refuses. Its answers are compared with the embedded store's, statement
 * by statement, by test/relayer/chain/simulator.test.ts.
 */
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from "kysely";
import type { Database } from "../../../relayer/store/database";
import { MIGRATIONS } from "../../../relayer/store/migrations/index";
import type { Row, Run } from "./expressions";
import { parse } from "./parser";
import { planOf, type Plan } from "./plans";
import { Tokens } from "./syntax";
import { Table } from "./tables";

export interface Answer {
  readonly command: string;
  readonly rowCount: number;
  readonly rows: readonly Row[];
}

/** The rows of tables, as they were. */
type Contents = Map<Table, readonly Row[]>;

/** The store's one connection: whoever asks for it gets it in turn. */
class Connection {
  readonly #client: PostgresPoolClient;
  #isTaken = false;
  readonly #waiting: ((client: PostgresPoolClient) => void)[] = [];

  constructor(query: (text: string, params?: readonly unknown[]) => Promise<Answer>) {
    this.#client = { query: query as unknown as PostgresPoolClient["query"], release: () => this.#leave() };
  }

  take(): Promise<PostgresPoolClient> {
    if (this.#isTaken) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#isTaken = true;
    return Promise.resolve(this.#client);
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isTaken = false;
    else next(this.#client);
  }
}

export class MemoryStore {
  readonly db: Kysely<Database>;
  readonly #tables = new Map<string, Table>();
  readonly #plans = new Map<string, Plan>();
  readonly #empty: Contents = new Map();
  /** Of the tables that the transaction has changed. */
  #atBegin: Contents | undefined;
  #connection = this.#newConnection();

  private constructor() {
    this.db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: this.pool() }) });
  }

  static async open(): Promise<MemoryStore> {
    const store = new MemoryStore();
    for (const { up } of Object.values(MIGRATIONS)) await up(store.db);
    for (const table of store.#tables.values()) store.#empty.set(table, table.rows);
    return store;
  }

  /** As it was after its migrations. */
  reset(): void {
    restore(this.#empty);
    this.#atBegin = undefined;
    // Whoever still has or awaits the old one is of an earlier history.
    this.#connection = this.#newConnection();
  }

  pool(): PostgresPool {
    return { connect: () => this.#connection.take(), end: () => Promise.resolve() };
  }

  #newConnection(): Connection {
    return new Connection((text, params = []) => {
      try {
        return Promise.resolve(this.execute(text, params));
      } catch (error) {
        return Promise.reject(error as Error);
      }
    });
  }

  execute(text: string, params: readonly unknown[]): Answer {
    const plan = this.#plans.get(text) ?? this.#planned(text);
    if (plan === undefined) return this.#control(text);
    const run: Run = { params, slots: [], group: undefined, place: 0, ctes: [], changes: [] };
    const rows = plan.rows(run);
    const rowCount = plan.command === "SELECT" ? rows.length : plan.changed(run);
    this.#apply(run);
    return { command: plan.command, rowCount, rows };
  }

  /** Undefined for what begins or ends a transaction, or defines. */
  #planned(text: string): Plan | undefined {
    if (CONTROL.test(text) || DEFINITION.test(text)) return undefined;
    const plan = planOf(parse(text), this.#tables);
    this.#plans.set(text, plan);
    return plan;
  }

  #control(text: string): Answer {
    if (!CONTROL.test(text)) {
      this.#define(text);
      return { command: "CREATE", rowCount: 0, rows: [] };
    }
    if (text === "rollback" && this.#atBegin !== undefined) restore(this.#atBegin);
    this.#atBegin = text === "begin" ? new Map() : undefined;
    return { command: text, rowCount: 0, rows: [] };
  }

  #apply({ changes }: Run): void {
    if (changes.length === 0) return;
    const before: Contents = new Map();
    const isOfOne = changes.every((change) => change.table === changes[0]?.table);
    const byTable = isOfOne
      ? [[changes[0]?.table ?? "", changes] as const]
      : Map.groupBy(changes, ({ table }) => table);
    for (const [name, own] of byTable) {
      const table = this.#tables.get(name) as Table;
      before.set(table, table.rows);
      try {
        table.change(own);
      } catch (error) {
        restore(before);
        throw error;
      }
    }
    if (this.#atBegin === undefined) return;
    for (const [table, rows] of before) if (!this.#atBegin.has(table)) this.#atBegin.set(table, rows);
  }

  /** Tables, columns and unique keys. Other definitions are for speed or for webhooks, and no migration has data. */
  #define(text: string): void {
    if (!/^\s*(create (unlogged )?table|create unique index|alter table \S+ add column) /.test(text)) return;
    const t = new Tokens(text);
    if (t.take("create", "table") || t.take("create", "unlogged", "table")) {
      const name = t.name();
      this.#tables.set(name, new Table(name, t));
    } else if (t.take("create", "unique", "index")) {
      t.name();
      t.expect("on");
      this.#tables.get(t.name())?.addUnique(t);
    } else if (t.take("alter", "table")) {
      const table = this.#tables.get(t.name());
      t.expect("add", "column");
      table?.addColumn(t);
    }
  }
}

function restore(contents: Contents): void {
  for (const [table, rows] of contents) table.rows = rows;
}

const CONTROL = /^(begin|commit|rollback)$/;
const DEFINITION = /^\s*(create|alter|drop|insert into key_expiries .*\s+select) /;
