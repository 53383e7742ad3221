/** Expressions of statements as functions over the rows at hand, with SQL's three-valued logic. */
import { compileFunction } from "node:vm";
import type { Expr, Query } from "./syntax";

export type Row = Readonly<Record<string, unknown>>;

/**
 * Makes rows with these columns, of others or with nothing in them. Each such function has code of its own: rows made
 * by one for all are dictionaries to the engine, and their copies take ten times as long.
 */
export function rowMaker(columns: readonly string[]): (from?: Row) => Record<string, unknown> {
  const members = columns.map((name) => JSON.stringify(name)).map((name) => `${name}: from[${name}] ?? null`);
  const made = compileFunction(`return { ${members.join(", ")} };`, ["from"]) as (from: Row) => Record<string, unknown>;
  return (from = NOBODY) => made(from);
}

/** One execution of a statement. */
export interface Run {
  readonly params: readonly unknown[];
  /** The row at hand of each source of the statement. */
  readonly slots: Row[];
  /** The group that aggregates are of, as the rows of its sources. */
  group: readonly (readonly Row[])[] | undefined;
  /** What `row_number` is. */
  place: number;
  /** The rows of each query of its `with`. */
  readonly ctes: (readonly Row[])[];
  /** What it changes once it is done: all its parts see what was there before. */
  readonly changes: Change[];
}

export interface Change {
  readonly table: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

export type Compiled = (run: Pick<Run, "params" | "place" | "group" | "slots">) => unknown;

/** Histories replace the clock, and with it what `Date` is. */
const AnyDate = Date;
const isDate = (value: unknown): value is Date => value instanceof AnyDate;

export interface Scope {
  /** @returns the slot of the source that has the column. */
  slotOf(name: string, table: string | undefined): number;
  query(query: Query): (run: Run) => readonly Row[];
  /** The slots of the sources that a group consists of. */
  readonly own: readonly number[];
}

export const isTrue = (value: unknown): boolean => value === true;
/** What a source has where nothing is found. */
export const NOBODY: Row = {};
const isNull = (value: unknown): value is null | undefined => value === null || value === undefined;

class Interval {
  constructor(readonly ms: number) {}
}

const UNIT_MS: Readonly<Record<string, number>> = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

function intervalOf(text: string): Interval {
  const [count, unit = ""] = text.split(" ");
  const ms = UNIT_MS[unit.replace(/s$/, "")];
  if (ms === undefined) throw new Error(`the store's double does not know the interval ${text}`);
  return new Interval(Number(count) * ms);
}

/** Comparable, and equal as a key of a Map. */
export function plain(value: unknown): string | number | boolean | null {
  if (isNull(value)) return null;
  if (isDate(value)) return value.getTime();
  if (typeof value === "bigint") return Number(value);
  return typeof value === "object" ? JSON.stringify(value) : (value as string | number | boolean);
}

export function compare(left: unknown, right: unknown): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  let [a, b] = [plain(left), plain(right)];
  if (typeof a === "number" && typeof b === "string") b = isDate(left) ? Date.parse(b) : Number(b);
  if (typeof b === "number" && typeof a === "string") a = isDate(right) ? Date.parse(a) : Number(a);
  if (a === b) return 0;
  return (a as number) < (b as number) ? -1 : 1;
}

/** Nulls are larger than everything. */
export function inOrder(left: unknown, right: unknown): number {
  if (isNull(left) || isNull(right)) return Number(isNull(left)) - Number(isNull(right));
  return compare(left, right);
}

const asText = (value: unknown): string => (isDate(value) ? value.toISOString() : String(value));
const asJson = (value: unknown): unknown => (typeof value === "string" ? JSON.parse(value) : value);
const asDate = (value: unknown): Date => (isDate(value) ? value : new Date(value as string));
const AS: Readonly<Record<string, (value: unknown) => unknown>> = {
  ...{ int: Number, int4: Number, int8: Number, integer: Number, bigint: Number, float8: Number },
  ...{ numeric: asText, text: asText, varchar: asText, json: asJson, jsonb: asJson, timestamptz: asDate, date: asDate },
};

/** A value as one of a type. */
export const valueOf = (value: unknown, type: string): unknown => (isNull(value) ? null : (AS[type]?.(value) ?? value));

const isEqual = (left: unknown, right: unknown): boolean =>
  typeof left === "string" && typeof right === "string" ? left === right : compare(left, right) === 0;

type Operator = (left: unknown, right: unknown) => unknown;
const known =
  (of: Operator): Operator =>
  (left, right) =>
    isNull(left) || isNull(right) ? null : of(left, right);

function moved(left: unknown, right: unknown, sign: 1 | -1): unknown {
  if (isDate(left) && right instanceof Interval) return new Date(left.getTime() + sign * right.ms);
  return Number(left) + sign * Number(right);
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  "=": known(isEqual),
  "<>": known((left, right) => !isEqual(left, right)),
  "!=": known((left, right) => !isEqual(left, right)),
  "<": known((left, right) => compare(left, right) < 0),
  ">": known((left, right) => compare(left, right) > 0),
  "<=": known((left, right) => compare(left, right) <= 0),
  ">=": known((left, right) => compare(left, right) >= 0),
  "||": known((left, right) => `${String(left)}${String(right)}`),
  "->": known((left, right) => (left as Row)[String(right)]),
  "->>": known((left, right) => {
    const member = (left as Row)[String(right)];
    return isNull(member) || typeof member === "string" ? member : JSON.stringify(member);
  }),
  "+": known((left, right) => moved(left, right, 1)),
  "-": known((left, right) => moved(left, right, -1)),
  "*": known((left, right) =>
    right instanceof Interval ? new Interval(Number(left) * right.ms) : Number(left) * Number(right),
  ),
  "/": known((left, right) => Math.trunc(Number(left) / Number(right))),
  "%": known((left, right) => Number(left) % Number(right)),
  "is distinct": (left, right) =>
    isNull(left) || isNull(right) ? isNull(left) !== isNull(right) : compare(left, right) !== 0,
};

const least = (values: readonly unknown[], sign: 1 | -1): unknown =>
  values
    .filter((value) => !isNull(value))
    .reduce<unknown>((best, value) => (isNull(best) || sign * compare(value, best) < 0 ? value : best), null);

const FUNCTIONS: Readonly<Record<string, (...values: readonly unknown[]) => unknown>> = {
  now: () => new Date(),
  coalesce: (...values) => values.find((value) => !isNull(value)) ?? null,
  least: (...values) => least(values, 1),
  greatest: (...values) => least(values, -1),
  interval: (text) => intervalOf(String(text)),
  extract: (date) => (date as Date).getTime() / 1_000,
  zoned: (date) => date,
  floor: (value) => (isNull(value) ? null : Math.floor(Number(value))),
  counts_sum: (counts, since) => counted(counts, since).reduce((sum, [, count]) => sum + count, 0),
  counts_add: (counts, changes, since) => {
    const sums = new Map(counted(counts, since));
    for (const [key, count] of counted(changes, since)) sums.set(key, (sums.get(key) ?? 0) + count);
    return Object.fromEntries(sums);
  },
  hashtext: () => 0,
  pg_advisory_xact_lock: () => "",
  jsonb_build_object: (...values) =>
    Object.fromEntries(
      values.flatMap((value, index) => (index % 2 === 0 ? [[String(value), values[index + 1] ?? null]] : [])),
    ),
  jsonb_strip_nulls: (value) => stripped(value),
};

/** Counts by hour or the like, as the functions of migration 0026 have them. */
const counted = (counts: unknown, since: unknown): (readonly [string, number])[] =>
  Object.entries((counts ?? {}) as Row)
    .filter(([key]) => Number(key) >= Number(since))
    .map(([key, count]) => [key, Number(count)]);

function stripped(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, stripped(member)]));
}

/** Of the values that are not null. */
const AGGREGATES: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  count: (values) => values.length,
  sum: (values) => (values.length === 0 ? null : values.reduce<number>((sum, value) => sum + Number(value), 0)),
  min: (values) => least(values, 1),
  max: (values) => least(values, -1),
  jsonb_object_agg: (pairs) => Object.fromEntries(pairs as readonly (readonly [PropertyKey, unknown])[]) as unknown,
};

/** Whether it needs the rows of a group; not what its queries need for themselves. */
export function isAggregate(expr: Expr): boolean {
  if (expr.e === "call") return expr.name in AGGREGATES || expr.args.some(isAggregate);
  if (expr.e === "binary") return isAggregate(expr.left) || isAggregate(expr.right);
  if (expr.e === "cast") return isAggregate(expr.of);
  return false;
}

export function compileAlone(expr: Expr, what: string): Compiled {
  const query = (): never => {
    throw new Error(`a query in a definition of ${what}`);
  };
  return compile(expr, { slotOf: () => 0, query, own: [] });
}

export function compile(expr: Expr, scope: Scope): Compiled {
  const of = (each: Expr): Compiled => compile(each, scope);
  switch (expr.e) {
    case "value":
      return () => expr.value;
    case "param":
      return ({ params }) => params[expr.index] ?? null;
    case "column":
      return columnOf(expr.name, scope.slotOf(expr.name, expr.table));
    case "binary":
      return binary(expr.op, of(expr.left), of(expr.right));
    case "not": {
      const value = of(expr.of);
      return (run) => {
        const now = value(run);
        return isNull(now) ? null : !isTrue(now);
      };
    }
    case "isNull": {
      const value = of(expr.of);
      return (run) => isNull(value(run));
    }
    case "cast": {
      const value = of(expr.of);
      return (run) => valueOf(value(run), expr.type);
    }
    case "rowNumber":
      return ({ place }) => place;
    case "call":
      return call(expr, scope);
    default:
      return rarer(expr, scope);
  }
}

type Rarer = Extract<
  Expr,
  { e: "star" | "in" | "inQuery" | "any" | "exists" | "scalar" | "arrayOf" | "array" | "case" }
>;

function rarer(expr: Rarer, scope: Scope): Compiled {
  const of = (each: Expr): Compiled => compile(each, scope);
  switch (expr.e) {
    case "in": {
      const [value, list] = [of(expr.of), expr.list.map(of)];
      return (run) =>
        among(
          value(run),
          "=",
          list.map((each) => each(run)),
        );
    }
    case "any": {
      const [value, list] = [of(expr.left), of(expr.right)];
      return (run) => among(value(run), expr.op, list(run) as readonly unknown[]);
    }
    case "inQuery": {
      const [value, rows] = [of(expr.of), scope.query(expr.query)];
      return (run) => among(value(run), "=", rows(run as Run).map(first));
    }
    case "exists": {
      const rows = scope.query(expr.query);
      return (run) => rows(run as Run).length > 0;
    }
    case "scalar": {
      const rows = scope.query(expr.query);
      return (run) => first(rows(run as Run)[0] ?? {});
    }
    case "arrayOf": {
      const rows = scope.query(expr.query);
      return (run) => rows(run as Run).map(first);
    }
    case "array": {
      const items = expr.items.map(of);
      return (run) => items.map((item) => item(run));
    }
    case "case": {
      const branches = expr.branches.map(([when, then]) => [of(when), of(then)] as const);
      const otherwise = expr.otherwise === undefined ? (): unknown => null : of(expr.otherwise);
      return (run) => (branches.find(([when]) => isTrue(when(run)))?.[1] ?? otherwise)(run);
    }
    case "star":
      throw new Error("* stands for columns, not for a value");
  }
}

const first = (row: Row): unknown => {
  for (const name in row) return row[name] ?? null;
  return null;
};

/** Where a row is: different for each. */
const places = new WeakMap<Row, number>();
let rowsPlaced = 0;

function placeOf(row: Row): unknown {
  const place = row["ctid"] ?? places.get(row) ?? ++rowsPlaced;
  places.set(row, place as number);
  return place;
}

const columnOf = (name: string, slot: number): Compiled =>
  name === "ctid" ? ({ slots }) => placeOf(slots[slot] ?? {}) : ({ slots }) => slots[slot]?.[name] ?? null;

function among(value: unknown, op: string, list: readonly unknown[] | null): unknown {
  const operator = OPERATORS[op] as Operator;
  if (isNull(value) || list === null) return null;
  let answer: unknown = false;
  for (const each of list) {
    const one = operator(value, each);
    if (one === true) return true;
    if (one === null) answer = null;
  }
  return answer;
}

function binary(op: string, left: Compiled, right: Compiled): Compiled {
  if (op === "and" || op === "or") {
    const decides = op === "or";
    return (run) => {
      const a = left(run);
      if (a === decides) return decides;
      const b = right(run);
      if (b === decides) return decides;
      return isNull(a) || isNull(b) ? null : !decides;
    };
  }
  const operator = OPERATORS[op];
  if (operator === undefined) throw new Error(`the store's double does not know ${op}`);
  if (op === "=") return equal(left, right);
  return (run) => operator(left(run), right(run));
}

/** By far the commonest. */
const equal =
  (left: Compiled, right: Compiled): Compiled =>
  (run) => {
    const a = left(run);
    if (isNull(a)) return null;
    const b = right(run);
    return isNull(b) ? null : isEqual(a, b);
  };

export function putRows(slots: Row[], own: readonly number[], rows: readonly Row[]): void {
  for (let index = 0; index < own.length; index++) slots[own[index] as number] = rows[index] ?? NOBODY;
}

function call({ name, args, filter }: Extract<Expr, { e: "call" }>, scope: Scope): Compiled {
  const values = args.map((each) => compile(each, scope));
  const aggregate = AGGREGATES[name];
  if (aggregate === undefined) {
    // Where no row asks for it, it need not be known.
    const unknown = (): never => {
      throw new Error(`the store's double does not know ${name}()`);
    };
    const of = FUNCTIONS[name] ?? unknown;
    if (name === "interval") {
      const [text] = args;
      const interval = text?.e === "value" ? of(text.value) : unknown();
      return () => interval;
    }
    return (run) => of(...values.map((value) => value(run)));
  }
  const counts = filter === undefined ? (): unknown => true : compile(filter, scope);
  const [one = (): unknown => true, second] = values;
  const value: Compiled = second === undefined ? one : (run) => [one(run), second(run)];
  let own: readonly number[] | undefined;
  return (run) => {
    const found: unknown[] = [];
    own ??= scope.own;
    const atHand = own.map((slot) => run.slots[slot] as Row);
    for (const rows of run.group ?? []) {
      putRows(run.slots, own, rows);
      const each = isTrue(counts(run)) ? value(run) : null;
      if (!isNull(each)) found.push(each);
    }
    putRows(run.slots, own, atHand);
    return aggregate(found);
  };
}
