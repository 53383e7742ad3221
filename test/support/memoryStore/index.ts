/**
 * The relayer's store in memory, for histories by the thousand: a small database that executes the relayer's own
 * statements, on tables made by its own migrations. One connection, as the embedded store has. It knows no locks, plans
 * or triggers; what it does not know of SQL it refuses. Its answers are compared with the embedded store's, statement
 * by statement, by test/relayer/chain/simulatedStore.test.ts.
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

type Contents = ReadonlyMap<string, readonly Row[]>;

export class MemoryStore {
  readonly db: Kysely<Database>;
  readonly #tables = new Map<string, Table>();
  readonly #plans = new Map<string, Plan>();
  #atBegin: Contents | undefined;
  #empty: Contents = new Map();
  #line: Promise<void> = Promise.resolve();

  private constructor() {
    this.db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: this.pool() }) });
  }

  static async open(): Promise<MemoryStore> {
    const store = new MemoryStore();
    for (const { up } of Object.values(MIGRATIONS)) await up(store.db);
    store.#empty = store.#contents();
    return store;
  }

  /** As it was after its migrations. */
  reset(): void {
    this.#restore(this.#empty);
    this.#atBegin = undefined;
    this.#line = Promise.resolve();
  }

  pool(): PostgresPool {
    const query = (text: string, params: readonly unknown[] = []): Promise<Answer> => {
      try {
        return Promise.resolve(this.execute(text, params));
      } catch (error) {
        return Promise.reject(error as Error);
      }
    };
    const connect = async (): Promise<PostgresPoolClient> => {
      const before = this.#line;
      let leave = (): void => undefined;
      this.#line = new Promise((resolve) => (leave = resolve));
      await before;
      return { query: query as unknown as PostgresPoolClient["query"], release: () => leave() };
    };
    return { connect, end: () => Promise.resolve() };
  }

  execute(text: string, params: readonly unknown[]): Answer {
    if (text === "begin") this.#atBegin = this.#contents();
    else if (text === "rollback" && this.#atBegin !== undefined) this.#restore(this.#atBegin);
    if (text === "commit" || text === "rollback") this.#atBegin = undefined;
    if (CONTROL.test(text)) return { command: text, rowCount: 0, rows: [] };
    if (this.#defines(text)) return { command: "CREATE", rowCount: 0, rows: [] };
    const plan = this.#plans.get(text) ?? planOf(parse(text), this.#tables);
    this.#plans.set(text, plan);
    const run: Run = { params, slots: [], group: undefined, place: 0, ctes: [], changes: [] };
    const rows = plan.rows(run);
    const rowCount = plan.command === "SELECT" ? rows.length : plan.changed(run);
    this.#apply(run);
    return { command: plan.command, rowCount, rows };
  }

  #contents(): Contents {
    return new Map([...this.#tables].map(([name, { rows }]) => [name, rows]));
  }

  #restore(contents: Contents): void {
    for (const [name, table] of this.#tables) table.rows = contents.get(name) ?? [];
  }

  #apply({ changes }: Run): void {
    if (changes.length === 0) return;
    const before = new Map<Table, readonly Row[]>();
    for (const name of new Set(changes.map(({ table }) => table))) {
      const table = this.#tables.get(name) as Table;
      before.set(table, table.rows);
      const own = changes.filter((change) => change.table === name);
      const changed = new Map<Row, Row | undefined>();
      for (const change of own) if (change.before !== undefined) changed.set(change.before, change.after);
      const kept = table.rows.map((row) => (changed.has(row) ? changed.get(row) : row));
      const added = own.map((change) => (change.before === undefined ? change.after : undefined));
      table.rows = [...kept, ...added].filter((row) => row !== undefined);
      try {
        table.requireUnique(changed);
      } catch (error) {
        for (const [of, rows] of before) of.rows = rows;
        throw error;
      }
    }
  }

  /** Tables, columns and unique keys. Other definitions are for speed or for webhooks, and no migration has data. */
  #defines(text: string): boolean {
    if (!DEFINITION.test(text)) return false;
    if (!/^\s*(create (unlogged )?table|create unique index|alter table \S+ add column) /.test(text)) return true;
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
    return true;
  }
}

const CONTROL = /^(begin|commit|rollback)$/;
const DEFINITION = /^\s*(create|alter|drop|insert into key_expiries .*\s+select) /;
