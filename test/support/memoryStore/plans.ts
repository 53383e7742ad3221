/** Plans of statements: what a statement does to the tables and answers, given its parameters. */
import { compile, inOrder, isAggregate, isTrue, plain, NOBODY, putRows, rowMaker } from "./expressions";
import type { Compiled, Row, Run, Scope } from "./expressions";
import type { Assignments, Delete, Expr, Insert, Item, Order, Query, Select, Source, Update } from "./syntax";
import { ConstraintFailed, type Table } from "./tables";

export interface Plan {
  readonly command: string;
  readonly columns: readonly string[];
  /** The rows that it answers with; the number of those that it changed. */
  readonly rows: (run: Run) => readonly Row[];
  readonly changed: (run: Run) => number;
}

interface Cte {
  readonly index: number;
  readonly columns: readonly string[];
}
type Ctes = ReadonlyMap<string, Cte>;

interface Bound {
  readonly alias: string;
  readonly slot: number;
  readonly columns: readonly string[];
  readonly join: Source["join"];
  readonly rows: (run: Run) => readonly Row[];
  readonly on?: Compiled;
  /** Its rows have a place of their own. */
  readonly isTable?: boolean;
}

interface Output {
  readonly name: string;
  readonly value: Compiled;
}

export function planOf(query: Query, tables: ReadonlyMap<string, Table>): Plan {
  return new Planner(tables).plan(query);
}

class Planner {
  #slots = 0;
  #ctes = 0;
  readonly tables: ReadonlyMap<string, Table>;

  constructor(tables: ReadonlyMap<string, Table>) {
    this.tables = tables;
  }

  plan(query: Query): Plan {
    return this.query(query, undefined, new Map());
  }

  slot(): number {
    return this.#slots++;
  }

  table(name: string): Table {
    const table = this.tables.get(name);
    if (table === undefined) throw new Error(`the store's double has no table ${name}`);
    return table;
  }

  query(query: Query, outer: Sources | undefined, known: Ctes): Plan {
    const ctes = new Map(known);
    const first: { readonly index: number; readonly plan: Plan }[] = [];
    for (const { name, query: of } of query.ctes) {
      const plan = this.query(of, outer, ctes);
      const index = this.#ctes++;
      first.push({ index, plan });
      ctes.set(name, { index, columns: plan.columns });
    }
    const plan = this.#body(query.body, new Sources(this, outer, ctes));
    if (first.length === 0) return plan;
    const rows = (run: Run): readonly Row[] => {
      for (const { index, plan: of } of first) run.ctes[index] = of.rows(run);
      return plan.rows(run);
    };
    return { ...plan, rows };
  }

  #body(body: Query["body"], sources: Sources): Plan {
    switch (body.do) {
      case "select":
        return select(body, sources);
      case "insert":
        return insert(body, this.table(body.table), sources);
      case "update":
        return update(body, this.table(body.table), sources);
      case "delete":
        return remove(body, this.table(body.table), sources);
    }
  }
}

/** The sources of one query, and how their rows are combined. */
class Sources implements Scope {
  readonly bound: Bound[] = [];
  /** Of the sources up to each: what their rows must pass. */
  #filters: readonly (Compiled | undefined)[] = [];
  readonly planner: Planner;
  readonly #outer: Sources | undefined;
  readonly ctes: Ctes;

  constructor(planner: Planner, outer: Sources | undefined, ctes: Ctes) {
    this.planner = planner;
    this.#outer = outer;
    this.ctes = ctes;
  }

  get own(): readonly number[] {
    return this.bound.map(({ slot }) => slot);
  }

  slotOf(name: string, table: string | undefined): number {
    const found = this.bound.find(
      ({ alias, columns, isTable }) =>
        (table === undefined || table === alias) && (columns.includes(name) || (isTable === true && name === "ctid")),
    );
    if (found !== undefined) return found.slot;
    if (this.#outer === undefined) throw new Error(`the store's double finds no column ${table ?? ""} ${name}`);
    return this.#outer.slotOf(name, table);
  }

  query(query: Query): (run: Run) => readonly Row[] {
    return this.planner.query(query, this, this.ctes).rows;
  }

  compile(expr: Expr): Compiled {
    return compile(expr, this);
  }

  add(bound: Bound): void {
    this.bound.push(bound);
  }

  table(alias: string, table: Table): number {
    const slot = this.planner.slot();
    this.add({ alias, slot, columns: table.names, join: "cross", rows: () => table.rows, isTable: true });
    return slot;
  }

  from(sources: readonly Source[]): void {
    for (const source of sources) {
      const { alias, join, using } = source;
      const slot = this.planner.slot();
      const before = [...this.bound];
      const bound = { alias, slot, join, ...this.#rowsOf(source) };
      this.add(bound);
      const on = using === undefined ? source.on : undefined;
      if (using !== undefined) {
        const same = using.map((name) => [slot, this.#slotAmong(before, name), name] as const);
        const isSame: Compiled = ({ slots }) =>
          same.every(([a, b, name]) => plain(slots[a]?.[name]) === plain(slots[b]?.[name]));
        this.bound[this.bound.length - 1] = { ...bound, on: isSame };
      } else if (on !== undefined) this.bound[this.bound.length - 1] = { ...bound, on: this.compile(on) };
    }
  }

  #slotAmong(bound: readonly Bound[], name: string): number {
    return bound.find(({ columns }) => columns.includes(name))?.slot ?? -1;
  }

  #rowsOf({ table, query, call, columns, alias }: Source): Pick<Bound, "columns" | "rows" | "isTable"> {
    if (query !== undefined) {
      const { columns: of, rows } = this.planner.query(query, this, this.ctes);
      return { columns: of, rows };
    }
    if (call !== undefined) return this.#called(call, columns ?? [alias]);
    const cte = this.ctes.get(table ?? "");
    if (cte !== undefined) return { columns: cte.columns, rows: (run) => run.ctes[cte.index] ?? [] };
    const of = this.planner.table(table ?? "");
    return { columns: of.names, rows: () => of.rows, isTable: true };
  }

  /** Rows that a function makes: of JSON's objects, or of an array's items. */
  #called(call: Expr, columns: readonly string[]): Pick<Bound, "columns" | "rows"> {
    if (call.e !== "call" || call.args[0] === undefined) throw new Error("a source that is no call");
    const list = this.compile(call.args[0]);
    if (call.name === "unnest")
      return { columns, rows: (run) => (list(run) as unknown[]).map((item) => ({ [columns[0] ?? ""]: item })) };
    if (call.name !== "jsonb_to_recordset") throw new Error(`the store's double does not know ${call.name}()`);
    const rows = (run: Run): Row[] =>
      (list(run) as Row[]).map((each) => Object.fromEntries(columns.map((name) => [name, each[name] ?? null])));
    return { columns, rows };
  }

  /** Each condition is asked as soon as the sources that it names are known. */
  where(expr: Expr | undefined): void {
    const filters: (Compiled | undefined)[] = [];
    for (const condition of conditionsOf(expr)) {
      const level = Math.max(0, Math.min(this.bound.length - 1, this.#levelOf(condition)));
      filters[level] = both(filters[level], this.compile(condition));
    }
    this.#filters = filters;
  }

  #levelOf(expr: Expr): number {
    const names = columnsOf(expr);
    if (names === undefined) return this.bound.length - 1;
    return Math.max(0, ...names.map(({ name, table }) => this.own.indexOf(this.slotOf(name, table))));
  }

  each(run: Run, emit: () => void, level = 0): void {
    const source = this.bound[level];
    const filter = this.#filters[level];
    if (source === undefined) {
      if (level > 0 || filter === undefined || isTrue(filter(run))) emit();
      return;
    }
    const { slot, on } = source;
    const isLast = level + 1 === this.bound.length;
    const go = (): void => {
      if (filter !== undefined && !isTrue(filter(run))) return;
      if (isLast) emit();
      else this.each(run, emit, level + 1);
    };
    let isMatched = false;
    for (const row of source.rows(run)) {
      run.slots[slot] = row;
      if (on !== undefined && !isTrue(on(run))) continue;
      isMatched = true;
      go();
    }
    if (isMatched || source.join !== "left") return;
    run.slots[slot] = NOBODY;
    go();
  }

  /** The columns of an answer. */
  outputs(items: readonly Item[]): readonly Output[] {
    const names = new Set<string>();
    return items.flatMap(({ expr, as }) => {
      if (expr.e === "star")
        return this.bound
          .filter(({ alias }) => expr.table === undefined || expr.table === alias)
          .flatMap(({ columns, slot }) =>
            columns.map((name) => ({
              name: unused(names, name),
              value: (({ slots }) => slots[slot]?.[name] ?? null) as Compiled,
            })),
          );
      return [{ name: unused(names, as ?? nameOf(expr)), value: this.compile(expr) }];
    });
  }
}

const both = (one: Compiled | undefined, other: Compiled): Compiled =>
  one === undefined ? other : (run) => isTrue(one(run)) && isTrue(other(run));

function unused(names: Set<string>, name: string): string {
  const free = names.has(name) ? `${name} ${names.size}` : name;
  names.add(free);
  return free;
}

function nameOf(expr: Expr): string {
  if (expr.e === "column" || expr.e === "call") return expr.name;
  return expr.e === "cast" ? nameOf(expr.of) : "?column?";
}

function conditionsOf(expr: Expr | undefined): readonly Expr[] {
  if (expr === undefined) return [];
  return expr.e === "binary" && expr.op === "and" ? [...conditionsOf(expr.left), ...conditionsOf(expr.right)] : [expr];
}

/** The columns that an expression reads; undefined where a query inside may read others. */
function columnsOf(expr: Expr): readonly { readonly name: string; readonly table?: string }[] | undefined {
  if (expr.e === "column") return [expr];
  const parts = partsOf(expr)?.map(columnsOf);
  return parts === undefined || parts.includes(undefined) ? undefined : parts.flatMap((part) => part ?? []);
}

function partsOf(expr: Expr): readonly Expr[] | undefined {
  switch (expr.e) {
    case "value":
    case "param":
      return [];
    case "binary":
    case "any":
      return [expr.left, expr.right];
    case "not":
    case "isNull":
    case "cast":
      return [expr.of];
    case "in":
      return [expr.of, ...expr.list];
    case "call":
      return expr.args;
    default:
      return undefined;
  }
}

const isWindowed = (expr: Expr): boolean => expr.e === "rowNumber" || partsOf(expr)?.some(isWindowed) === true;

function windowOf(expr: Expr): readonly Order[] | undefined {
  if (expr.e === "rowNumber") return expr.order;
  return partsOf(expr)
    ?.map(windowOf)
    .find((order) => order !== undefined);
}

const NO_KEYS: readonly unknown[] = [];

function rowOf(outputs: readonly Output[]): (run: Run) => Row {
  const made = rowMaker(outputs.map(({ name }) => name));
  return (run) => {
    const row = made();
    for (const { name, value } of outputs) row[name] = value(run);
    return row;
  };
}

interface Found {
  readonly row: Row;
  readonly keys: readonly unknown[];
  readonly distinct: string;
}

function select(of: Select, sources: Sources): Plan {
  sources.from(of.from);
  sources.where(of.where);
  const outputs = sources.outputs(of.items);
  const columns = outputs.map(({ name }) => name);
  const order = of.order.map(({ by }) => keyOf(by, outputs, sources));
  const distinct =
    of.distinct === true ? outputs.map(({ value }) => value) : (of.distinct || []).map((by) => sources.compile(by));
  const row = rowOf(outputs);
  const found = (run: Run): Found => ({
    row: row(run),
    keys: order.length === 0 ? NO_KEYS : order.map((key) => key(run)),
    distinct: distinct.length === 0 ? "" : JSON.stringify(distinct.map((value) => plain(value(run)))),
  });
  const others =
    of.union === undefined ? undefined : select(of.union, new Sources(sources.planner, undefined, sources.ctes));
  const limit = of.limit === undefined ? undefined : sources.compile(of.limit);
  const all = combinations(of, sources, outputs);
  const ordered = (run: Run): readonly Row[] => {
    let rowsFound = sorted(all(run, found), of.order);
    if (distinct.length > 0)
      rowsFound = [...new Map(rowsFound.reverse().map((each) => [each.distinct, each])).values()].reverse();
    return rowsFound.map((each) => each.row);
  };
  const isOrdered = order.length > 0 || distinct.length > 0;
  const rows = (run: Run): readonly Row[] => {
    const every = isOrdered ? ordered(run) : all(run, row);
    const own = limit === undefined ? every : every.slice(0, Number(limit(run)));
    if (others === undefined) return own;
    const named = others.rows(run).map((row) => Object.values(row));
    return [...own, ...named.map((values) => Object.fromEntries(columns.map((name, at) => [name, values[at]])))];
  };
  return { command: "SELECT", columns, rows, changed: () => 0 };
}

type All = <T>(run: Run, found: (run: Run) => T) => T[];

/** How the rows of the sources become rows of the answer: one by one, numbered, or in groups. */
function combinations(of: Select, sources: Sources, outputs: readonly Output[]): All {
  if (of.group !== undefined || of.items.some(({ expr }) => isAggregate(expr)))
    return grouped(
      sources,
      (of.group ?? []).map((by) => keyOf(by, outputs, sources)),
      of.group !== undefined,
    );
  const windowed = of.items.find(({ expr }) => isWindowed(expr));
  if (windowed !== undefined) return numbered(sources, windowOf(windowed.expr) ?? []);
  return (run, found) => {
    const rows: ReturnType<typeof found>[] = [];
    sources.each(run, () => rows.push(found(run)));
    return rows;
  };
}

function grouped(sources: Sources, by: readonly Compiled[], mayBeEmpty: boolean): All {
  const slots = sources.own;
  return (run, found) => {
    const groups = new Map<string, (readonly Row[])[]>();
    sources.each(run, () => {
      const key = by.length === 0 ? "" : JSON.stringify(by.map((value) => plain(value(run))));
      const rows = groups.get(key);
      const own = slots.map((slot) => run.slots[slot] as Row);
      if (rows === undefined) groups.set(key, [own]);
      else rows.push(own);
    });
    if (groups.size === 0 && !mayBeEmpty) groups.set("", []);
    return [...groups.values()].map((group) => {
      putRows(run.slots, slots, group[0] ?? []);
      const outer = run.group;
      run.group = group;
      const row = found(run);
      run.group = outer;
      return row;
    });
  };
}

function numbered(sources: Sources, order: readonly Order[]): All {
  const keys = order.map(({ by }) => sources.compile(by));
  const slots = sources.own;
  return (run, found) => {
    const all: { readonly keys: readonly unknown[]; readonly rows: readonly Row[] }[] = [];
    sources.each(run, () =>
      all.push({ keys: keys.map((key) => key(run)), rows: slots.map((slot) => run.slots[slot] as Row) }),
    );
    return sorted(all, order).map(({ rows }, index) => {
      putRows(run.slots, slots, rows);
      run.place = index + 1;
      return found(run);
    });
  };
}

/** A number stands for a column of the answer, and so does a name. */
function keyOf(by: Expr, outputs: readonly Output[], sources: Sources): Compiled {
  const output =
    by.e === "value"
      ? outputs[Number(by.value) - 1]
      : by.e === "column" && by.table === undefined
        ? outputs.find(({ name }) => name === by.name)
        : undefined;
  return output?.value ?? sources.compile(by);
}

function sorted<T extends { readonly keys: readonly unknown[] }>(rows: T[], order: readonly Order[]): T[] {
  if (rows.length < 2 || order.length === 0) return rows;
  return rows.sort((a, b) => {
    for (let index = 0; index < order.length; index++) {
      const difference = inOrder(a.keys[index], b.keys[index]);
      if (difference !== 0) return order[index]?.isDescending === true ? -difference : difference;
    }
    return 0;
  });
}

/** What is stored of a row, given the assignments that apply to it. */
function changer(set: Assignments, table: Table, sources: Sources): (run: Run, before: Row) => Row {
  const changes = set.map(({ column, to }) => ({
    column,
    stored: table.stored(column, to),
    value: sources.compile(to),
  }));
  const copied = rowMaker(table.names);
  return (run, before) => {
    const after = copied(before);
    for (const { column, stored, value } of changes) after[column] = stored(value(run));
    table.check(after);
    return after;
  };
}

type Answer = (run: Run, row: Row) => Row | undefined;

function answering(
  command: string,
  {
    table,
    slot,
    sources,
    returning,
  }: { table: Table; slot: number; sources: Sources; returning: readonly Item[] | undefined },
  work: (run: Run, note: (before: Row | undefined, after: Row | undefined) => void) => void,
): Plan {
  const outputs = returning === undefined ? [] : sources.outputs(returning);
  const made = rowOf(outputs);
  const answer: Answer = (run, row) => {
    if (returning === undefined) return undefined;
    run.slots[slot] = row;
    return made(run);
  };
  const rows = (run: Run): readonly Row[] => {
    const answers: Row[] = [];
    work(run, (before, after) => {
      run.changes.push({ table: table.name, before, after });
      const row = answer(run, (after ?? before) as Row);
      if (row !== undefined) answers.push(row);
    });
    return answers;
  };
  const changed = (run: Run): number => run.changes.filter((change) => change.table === table.name).length;
  return { command, columns: outputs.map(({ name }) => name), rows, changed };
}

function update({ alias, set, from, where, returning }: Update, table: Table, sources: Sources): Plan {
  const slot = sources.table(alias, table);
  sources.from(from);
  sources.where(where);
  const changed = changer(set, table, sources);
  return answering("UPDATE", { table, slot, sources, returning }, (run, note) => {
    const done = new Set<Row>();
    sources.each(run, () => {
      const before = run.slots[slot] as Row;
      if (done.has(before)) return;
      done.add(before);
      note(before, changed(run, before));
      run.slots[slot] = before;
    });
  });
}

function remove({ alias, from, where, returning }: Delete, table: Table, sources: Sources): Plan {
  const slot = sources.table(alias, table);
  sources.from(from);
  sources.where(where);
  return answering("DELETE", { table, slot, sources, returning }, (run, note) => {
    const done = new Set<Row>();
    sources.each(run, () => {
      const before = run.slots[slot] as Row;
      if (!done.has(before)) note(before, undefined);
      done.add(before);
    });
  });
}

function insert(of: Insert, table: Table, sources: Sources): Plan {
  const { columns, query, conflict, returning } = of;
  const literal = of.rows.map((row) => row.map((expr) => ({ expr, value: sources.compile(expr) })));
  const selected = query === undefined ? undefined : sources.planner.query(query, sources, sources.ctes);
  const exprs = query?.body.do === "select" ? query.body.items.map(({ expr }) => expr) : [];
  const slot = sources.table(of.table, table);
  sources.add({ alias: "excluded", slot: sources.planner.slot(), columns: table.names, join: "cross", rows: () => [] });
  const excluded = sources.bound.at(-1)?.slot ?? 0;
  const changed = conflict?.set === undefined ? undefined : changer(conflict.set, table, sources);
  const target = conflict?.columns?.join();
  const applies = conflict?.where === undefined ? (): unknown => true : sources.compile(conflict.where);
  const makes = literal.map((row) =>
    table.maker(
      columns,
      row.map(({ expr }) => expr),
    ),
  );
  const makesSelected = table.maker(
    columns,
    columns.map((_, at) => exprs[at] ?? { e: "star" }),
  );
  const given = (run: Run): readonly Row[] => [
    ...makes.map((make, at) => make((literal[at] ?? []).map(({ value }) => value(run)))),
    ...(selected?.rows(run) ?? []).map((row) => makesSelected(Object.values(row))),
  ];
  return answering("INSERT", { table, slot, sources: own(sources, slot), returning }, (run, note) => {
    for (const row of given(run)) {
      const added = run.changes.flatMap(({ table: name, after }) => (name === table.name && after ? [after] : []));
      const other = conflict === undefined ? undefined : table.conflicting(row, added, target);
      if (other === undefined && table.conflicting(row, added) !== undefined)
        throw new ConstraintFailed(`a unique key of ${table.name} exists: ${JSON.stringify(row)}`, "23505");
      if (other === undefined) {
        note(undefined, row);
        continue;
      }
      run.slots[slot] = other;
      run.slots[excluded] = row;
      if (changed !== undefined && isTrue(applies(run))) note(other, changed(run, other));
    }
  });
}

/** `returning *` is of the table alone. */
function own(sources: Sources, slot: number): Sources {
  const only = new Sources(sources.planner, sources, sources.ctes);
  const table = sources.bound.find((bound) => bound.slot === slot);
  if (table !== undefined) only.add(table);
  return only;
}
