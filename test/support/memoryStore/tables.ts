/** Tables of the store's double, as the migrations define them: columns, defaults, checks and unique keys. */
import { compileAlone, isTrue, plain, valueOf, type Change, type Compiled, type Row } from "./expressions";
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

  constructor(
    readonly name: string,
    t: Tokens,
  ) {
    const parts = (): void => {
      if (t.take("primary", "key") || t.take("unique")) this.uniques.push({ columns: namesIn(t), where: undefined });
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
  }

  #column(t: Tokens): Column {
    const name = t.name();
    const type = typeIn(t);
    let [isRequired, isIdentity] = [false, false];
    let standard: Compiled | undefined;
    for (;;) {
      if (t.take("primary", "key") || t.take("unique")) this.uniques.push({ columns: [name], where: undefined });
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
    this.uniques.push({ columns, where: t.take("where") ? compileAlone(parseExpression(t), this.name) : undefined });
  }

  /** A value as the column stores it. */
  stored(name: string, value: unknown, from: Expr): unknown {
    const column = this.#columns.get(name);
    if (column === undefined) throw new Error(`${this.name} has no column ${name}`);
    const isText = from.e === "param" || from.e === "value";
    return isText && (column.type === "json" || column.type === "jsonb") ? jsonOf(value) : valueOf(value, column.type);
  }

  made(given: Row): Row {
    const row: Record<string, unknown> = {};
    for (const { name, isIdentity, standard } of this.#columns.values()) {
      if (isIdentity) row[name] = ++this.#identity;
      else if (name in given) row[name] = given[name] ?? null;
      else row[name] = standard === undefined ? null : valueOf(standard(NOTHING), this.#columns.get(name)?.type ?? "");
    }
    this.check(row);
    return row;
  }

  check(row: Row): void {
    for (const { name, isRequired } of this.#columns.values())
      if (isRequired && row[name] === null) throw new ConstraintFailed(`${this.name}.${name} is null`, "23502");
    for (const check of this.#checks)
      if (check({ ...NOTHING, slots: [row] }) === false)
        throw new ConstraintFailed(`a check of ${this.name} fails: ${JSON.stringify(row)}`, "23514");
  }

  /** A row among these that has the same unique key, of the given columns if any. */
  conflicting(row: Row, among: readonly Row[], columns?: readonly string[]): Row | undefined {
    for (const unique of this.uniques) {
      if (columns !== undefined && columns.join() !== unique.columns.join()) continue;
      const key = keyOf(unique, row);
      const other = key === undefined ? undefined : among.find((each) => each !== row && keyOf(unique, each) === key);
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
    const kept = changed.size === 0 ? this.rows : this.rows.map((row) => (changed.has(row) ? changed.get(row) : row));
    this.rows = [...kept, ...added].filter((row) => row !== undefined);
    this.#requireUnique(changed);
  }

  /** Of changed rows. One whose keys are what they were is as unique as it was. */
  #requireUnique(changed: ReadonlyMap<Row, Row | undefined>): void {
    for (const [before, row] of changed) {
      if (row === undefined || this.uniques.every((unique) => keyOf(unique, row) === keyOf(unique, before))) continue;
      if (this.conflicting(row, this.rows) !== undefined)
        throw new ConstraintFailed(`a unique key of ${this.name} exists: ${JSON.stringify(row)}`, "23505");
    }
  }
}

const NOTHING: Parameters<Compiled>[0] = { params: [], slots: [], group: undefined, place: 0 };

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
