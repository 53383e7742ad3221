/** Tables of the store's double, as the migrations define them: columns, defaults, checks and unique keys. */
import { compileAlone, isTrue, plain, rowMaker, valueOf, type Change, type Compiled, type Row } from "./expressions";
import { parseExpression } from "./parser";
import { type Tokens, type Expr } from "./syntax";

interface Column {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly isIdentity: boolean;
  readonly standard: Compiled | undefined;
}

interface Unique {
  readonly columns: readonly string[];
  /** The same, as one text. */
  readonly named: string;
  readonly where: Compiled | undefined;
}

/** As PostgreSQL names it. */
export class ConstraintFailed extends Error {
  constructor(
    message: string,
    readonly code: "23505" | "23514" | "23502",
  ) {
    super(message);
  }
}

export class Table {
  rows: readonly Row[] = [];
  #identity = 0;
  readonly uniques: Unique[] = [];
  readonly #checks: Compiled[] = [];
  readonly #columns = new Map<string, Column>();
  readonly #required: string[] = [];
  /** The rows that the keys are of. */
  #indexed: readonly Row[] | undefined;
  #keysOfRows: readonly Keys[] = [];

  constructor(
    readonly name: string,
    t: Tokens,
  ) {
    const parts = (): void => {
      if (t.take("primary", "key") || t.take("unique")) this.uniques.push(uniqueOf(namesIn(t)));
      else if (t.take("check")) this.#checks.push(this.#checkIn(t));
      else this.addColumn(t);
    };
    t.expect("(");
    t.list(parts);
    t.expect(")");
  }

  readonly names: string[] = [];

  addColumn(t: Tokens): void {
    const column = this.#column(t);
    this.names.push(column.name);
    this.#columns.set(column.name, column);
    if (column.isRequired) this.#required.push(column.name);
  }

  #column(t: Tokens): Column {
    const name = t.name();
    const type = typeIn(t);
    let [isRequired, isIdentity] = [false, false];
    let standard: Compiled | undefined;
    for (;;) {
      if (t.take("primary", "key") || t.take("unique")) this.uniques.push(uniqueOf([name]));
      else if (t.take("not", "null")) isRequired = true;
      else if (t.take("default")) standard = compileAlone(parseExpression(t), name);
      else if (t.take("check")) this.#checks.push(this.#checkIn(t));
      else if (t.take("generated", "always", "as", "identity")) isIdentity = true;
      else if (t.take("references")) referenced(t);
      else return { name, type, isRequired, isIdentity, standard };
    }
  }

  #checkIn(t: Tokens): Compiled {
    t.expect("(");
    const check = compileAlone(parseExpression(t), this.name);
    t.expect(")");
    return check;
  }

  addUnique(t: Tokens): void {
    const columns = namesIn(t);
    this.uniques.push(uniqueOf(columns, t.take("where") ? compileAlone(parseExpression(t), this.name) : undefined));
  }

  /** Makes of a value what the column stores. */
  stored(name: string, from: Expr): (value: unknown) => unknown {
    const column = this.#columns.get(name);
    if (column === undefined) throw new Error(`${this.name} has no column ${name}`);
    const { type } = column;
    const isText = from.e === "param" || from.e === "value";
    return isText && (type === "json" || type === "jsonb") ? jsonOf : (value) => valueOf(value, type);
  }

  /** Makes rows of values for these columns. */
  maker(columns: readonly string[], from: readonly Expr[]): (values: readonly unknown[]) => Row {
    const empty = rowMaker(this.names);
    const given = new Map(columns.map((name, at) => [name, { at, stored: this.stored(name, from[at] as Expr) }]));
    const parts = [...this.#columns.values()].map((column) => ({ ...column, given: given.get(column.name) }));
    return (values) => {
      const row = empty();
      for (const { name, type, isIdentity, standard, given: of } of parts)
        if (isIdentity) row[name] = ++this.#identity;
        else if (of !== undefined) row[name] = of.stored(values[of.at]) ?? null;
        else if (standard !== undefined) row[name] = valueOf(standard(NOTHING), type);
      this.check(row);
      return row;
    };
  }

  check(row: Row): void {
    for (const name of this.#required)
      if (row[name] === null) throw new ConstraintFailed(`${this.name}.${name} is null`, "23502");
    if (this.#checks.length === 0) return;
    const run = { ...NOTHING, slots: [row] };
    for (const check of this.#checks)
      if (check(run) === false)
        throw new ConstraintFailed(`a check of ${this.name} fails: ${JSON.stringify(row)}`, "23514");
  }

  /** A row of the table, or among these others, that has the same unique key: of the columns so named, if any. */
  conflicting(row: Row, others: readonly Row[], named?: string): Row | undefined {
    for (const [at, unique] of this.uniques.entries()) {
      if (named !== undefined && named !== unique.named) continue;
      const key = keyOf(unique, row);
      if (key === undefined) continue;
      const other = this.#keys()[at]?.get(key) ?? others.find((each) => keyOf(unique, each) === key);
      if (other !== undefined) return other;
    }
    return undefined;
  }

  change(changes: readonly Change[]): void {
    const changed = new Map<Row, Row | undefined>();
    const added: Row[] = [];
    for (const { before, after } of changes) {
      if (before !== undefined) changed.set(before, after);
      else if (after !== undefined) added.push(after);
    }
    const keys = this.#keys();
    // Until all are changed, and if one cannot be.
    this.#indexed = undefined;
    const rows = changed.size === 0 ? [...this.rows] : [];
    if (changed.size > 0)
      for (const row of this.rows) {
        const now = changed.has(row) ? changed.get(row) : row;
        if (now !== undefined) rows.push(now);
      }
    this.rows = [...rows, ...added];
    for (const [at, unique] of this.uniques.entries()) this.#changeKeys(keys[at] as Keys, unique, changed, added);
    this.#indexed = this.rows;
  }

  /** A row whose key is what it was is as unique as it was. */
  #changeKeys(keys: Keys, unique: Unique, changed: ReadonlyMap<Row, Row | undefined>, added: readonly Row[]): void {
    const moved: (readonly [key: string, row: Row])[] = [];
    for (const [before, row] of changed) {
      const key = keyOf(unique, before);
      const now = row === undefined ? undefined : keyOf(unique, row);
      if (key !== undefined && key !== now) keys.delete(key);
      if (now === undefined || row === undefined) continue;
      if (key === now) keys.set(now, row);
      else moved.push([now, row]);
    }
    for (const row of added) {
      const key = keyOf(unique, row);
      if (key !== undefined) keys.set(key, row);
    }
    for (const [key, row] of moved) {
      if (keys.has(key))
        throw new ConstraintFailed(`a unique key of ${this.name} exists: ${JSON.stringify(row)}`, "23505");
      keys.set(key, row);
    }
  }

  /** The rows by their unique keys, one after the other. A transaction that is undone brings back older rows. */
  #keys(): readonly Keys[] {
    if (this.#indexed !== this.rows || this.#keysOfRows.length !== this.uniques.length) {
      this.#keysOfRows = this.uniques.map((unique) => new Map(this.rows.map((row) => [keyOf(unique, row), row])));
      for (const keys of this.#keysOfRows) keys.delete(undefined);
      this.#indexed = this.rows;
    }
    return this.#keysOfRows;
  }
}

type Keys = Map<string | undefined, Row>;

const NOTHING: Parameters<Compiled>[0] = { params: [], slots: [], group: undefined, place: 0 };

const uniqueOf = (columns: readonly string[], where?: Compiled): Unique => ({ columns, named: columns.join(), where });

function keyOf({ columns, where }: Unique, row: Row): string | undefined {
  if (where !== undefined && !isTrue(where({ ...NOTHING, slots: [row] }))) return undefined;
  let key = "";
  for (const column of columns) {
    const value = plain(row[column]);
    if (value === null) return undefined;
    key += `${value}\n`;
  }
  return key;
}

function jsonOf(value: unknown): unknown {
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? JSON.parse(value) : JSON.parse(JSON.stringify(value));
}

function namesIn(t: Tokens): readonly string[] {
  t.expect("(");
  const names = t.list(() => {
    const name = t.name();
    t.take("desc");
    return name;
  });
  t.expect(")");
  return names;
}

function typeIn(t: Tokens): string {
  const type = t.name();
  if (t.take("(")) t.skipParenthesis();
  return t.take("[", "]") ? `${type}[]` : type;
}

function referenced(t: Tokens): void {
  t.name();
  if (t.take("(")) t.skipParenthesis();
  t.take("on", "delete", "cascade");
}
