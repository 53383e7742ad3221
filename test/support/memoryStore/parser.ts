/** Reads a statement of the store. What the relayer does not use is refused, so that a new construct is noticed. */
import { Tokens } from "./syntax";
import type { Assignments, Delete, Expr, Insert, Item, Order, Query, Select, Source, Update } from "./syntax";

/** From the loosest to the tightest. */
const LEVELS: readonly (readonly string[])[] = [
  ["=", "<>", "!=", "<", ">", "<=", ">="],
  ["||", "->", "->>"],
  ["+", "-"],
  ["*", "/", "%"],
];
const NO_ALIAS: ReadonlySet<string> = new Set(
  (
    "where from join left cross inner on using group order limit for union returning set values select " +
    "conflict do and or as then else when end filter over"
  ).split(" "),
);

export function parse(text: string): Query {
  const parser = new Parser(new Tokens(text));
  return parser.whole();
}

/** An expression alone, as defaults and checks are. */
export const parseExpression = (tokens: Tokens): Expr => new Parser(tokens).expr();

class Parser {
  readonly #t: Tokens;

  constructor(tokens: Tokens) {
    this.#t = tokens;
  }

  whole(): Query {
    const query = this.#query();
    this.#t.take(";");
    if (this.#t.peek().kind !== "end") throw this.#t.unexpected("the end");
    return query;
  }

  #query(): Query {
    const ctes: { name: string; query: Query }[] = [];
    if (this.#t.take("with"))
      do {
        const name = this.#t.name();
        this.#t.expect("as");
        this.#t.take("materialized");
        ctes.push({ name, query: this.#parenthesised() });
      } while (this.#t.take(","));
    return { ctes, body: this.#body() };
  }

  #parenthesised(): Query {
    this.#t.expect("(");
    const query = this.#query();
    this.#t.expect(")");
    return query;
  }

  #body(): Query["body"] {
    if (this.#t.take("insert", "into")) return this.#insert();
    if (this.#t.take("update")) return this.#update();
    if (this.#t.take("delete", "from")) return this.#delete();
    return this.#select();
  }

  #select(): Select {
    this.#t.expect("select");
    const distinct = this.#distinct();
    const items = this.#t.is("from") || this.#t.is(")") ? [] : this.#items();
    const from = this.#t.take("from") ? this.#sources() : [];
    const where = this.#where();
    const group = this.#t.take("group", "by") ? this.#t.list(() => this.expr()) : undefined;
    const union = this.#t.take("union", "all") ? this.#select() : undefined;
    const order = this.#order();
    const limit = this.#t.take("limit") ? this.expr() : undefined;
    if (this.#t.take("for")) {
      if (!this.#t.take("update")) this.#t.expect("key", "share");
      if (this.#t.take("of")) this.#t.name();
      this.#t.take("skip", "locked");
    }
    return { do: "select", distinct, items, from, ...some({ where, group, union, limit }), order };
  }

  #distinct(): boolean | readonly Expr[] {
    if (!this.#t.take("distinct")) return false;
    if (!this.#t.take("on")) return true;
    this.#t.expect("(");
    const by = this.#t.list(() => this.expr());
    this.#t.expect(")");
    return by;
  }

  #items(): readonly Item[] {
    return this.#t.list(() => {
      if (this.#t.take("*")) return { expr: { e: "star" } };
      if (this.#t.is(".", "*") || (this.#t.peek(1).text === "." && this.#t.peek(2).text === "*")) {
        const table = this.#t.name();
        this.#t.expect(".", "*");
        return { expr: { e: "star", table } };
      }
      const expr = this.expr();
      return { expr, ...some({ as: this.#alias() }) };
    });
  }

  #alias(): string | undefined {
    if (this.#t.take("as")) return this.#t.name();
    const { kind, text } = this.#t.peek();
    return kind === "quoted" || (kind === "word" && !NO_ALIAS.has(text)) ? this.#t.name() : undefined;
  }

  #order(): readonly Order[] {
    if (!this.#t.take("order", "by")) return [];
    return this.#t.list(() => {
      const by = this.expr();
      const isDescending = this.#t.take("desc");
      if (!isDescending) this.#t.take("asc");
      return { by, isDescending };
    });
  }

  #where(): Expr | undefined {
    return this.#t.take("where") ? this.expr() : undefined;
  }

  #sources(): readonly Source[] {
    const sources = [this.#source("cross")];
    for (;;) {
      if (this.#t.take(",")) sources.push(this.#source("cross"));
      else if (this.#t.take("cross", "join")) sources.push(this.#source("cross"));
      else if (this.#t.take("left", "join")) sources.push(this.#joined("left"));
      else if (this.#t.take("inner", "join") || this.#t.take("join")) sources.push(this.#joined("inner"));
      else return sources;
    }
  }

  #joined(join: "inner" | "left"): Source {
    const source = this.#source(join);
    if (this.#t.take("on")) return { ...source, on: this.expr() };
    this.#t.expect("using", "(");
    const using = this.#t.list(() => this.#t.name());
    this.#t.expect(")");
    return { ...source, using };
  }

  #source(join: Source["join"]): Source {
    this.#t.take("lateral");
    if (this.#t.is("(")) {
      const query = this.#parenthesised();
      return { join, query, alias: this.#alias() ?? "" };
    }
    const name = this.#t.name();
    if (!this.#t.take("(")) return { join, table: name, alias: this.#alias() ?? name };
    const args = this.#t.list(() => this.expr());
    this.#t.expect(")");
    const call: Expr = { e: "call", name, args };
    const alias = this.#alias() ?? name;
    if (!this.#t.take("(")) return { join, call, alias };
    const columns = this.#t.list(() => {
      const column = this.#t.name();
      this.#type();
      return column;
    });
    this.#t.expect(")");
    return { join, call, alias, columns };
  }

  #insert(): Insert {
    const table = this.#t.name();
    const columns = this.#names();
    const rows: (readonly Expr[])[] = [];
    let query: Query | undefined;
    if (this.#t.take("values"))
      do {
        this.#t.expect("(");
        rows.push(this.#t.list(() => this.expr()));
        this.#t.expect(")");
      } while (this.#t.take(","));
    else query = this.#query();
    const conflict = this.#t.take("on", "conflict") ? this.#conflict() : undefined;
    return { do: "insert", table, columns, rows, ...some({ query, conflict, returning: this.#returning() }) };
  }

  #names(): readonly string[] {
    this.#t.expect("(");
    const names = this.#t.list(() => this.#t.name());
    this.#t.expect(")");
    return names;
  }

  #conflict(): NonNullable<Insert["conflict"]> {
    const columns = this.#t.is("(") ? this.#names() : undefined;
    this.#t.expect("do");
    if (this.#t.take("nothing")) return some({ columns });
    this.#t.expect("update");
    const set = this.#assignments();
    return some({ columns, set, where: this.#where() });
  }

  #assignments(): Assignments {
    this.#t.expect("set");
    return this.#t.list(() => {
      const column = this.#t.name();
      this.#t.expect("=");
      return { column, to: this.expr() };
    });
  }

  #target(): { readonly table: string; readonly alias: string } {
    const table = this.#t.name();
    return { table, alias: this.#alias() ?? table };
  }

  #update(): Update {
    const target = this.#target();
    const set = this.#assignments();
    const from = this.#t.take("from") ? this.#sources() : [];
    return { do: "update", ...target, set, from, ...some({ where: this.#where(), returning: this.#returning() }) };
  }

  #delete(): Delete {
    const target = this.#target();
    const from = this.#t.take("using") ? this.#sources() : [];
    return { do: "delete", ...target, from, ...some({ where: this.#where(), returning: this.#returning() }) };
  }

  #returning(): readonly Item[] | undefined {
    return this.#t.take("returning") ? this.#items() : undefined;
  }

  expr(): Expr {
    let left = this.#and();
    while (this.#t.take("or")) left = { e: "binary", op: "or", left, right: this.#and() };
    return left;
  }

  #and(): Expr {
    let left = this.#not();
    while (this.#t.take("and")) left = { e: "binary", op: "and", left, right: this.#not() };
    return left;
  }

  #not(): Expr {
    return this.#t.take("not") ? { e: "not", of: this.#not() } : this.#tested();
  }

  /** A comparison, and what may follow it. */
  #tested(): Expr {
    const of = this.#level(0);
    const isNegated = this.#t.is("not", "in") || this.#t.is("not", "between");
    if (isNegated) this.#t.expect("not");
    if (this.#t.take("in")) return negated(this.#in(of), isNegated);
    if (this.#t.take("between")) return negated(this.#between(of), isNegated);
    if (!this.#t.take("is")) return of;
    const isNot = this.#t.take("not");
    if (this.#t.take("null")) return negated({ e: "isNull", of }, isNot);
    this.#t.expect("distinct", "from");
    return negated({ e: "binary", op: "is distinct", left: of, right: this.#level(1) }, isNot);
  }

  #between(of: Expr): Expr {
    const least = this.#level(1);
    this.#t.expect("and");
    const right: Expr = { e: "binary", op: "<=", left: of, right: this.#level(1) };
    return { e: "binary", op: "and", left: { e: "binary", op: ">=", left: of, right: least }, right };
  }

  #in(of: Expr): Expr {
    if (this.#t.is("(", "select")) return { e: "inQuery", of, query: this.#parenthesised() };
    this.#t.expect("(");
    const list = this.#t.list(() => this.expr());
    this.#t.expect(")");
    return { e: "in", of, list };
  }

  #level(level: number): Expr {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#postfix();
    let left = this.#level(level + 1);
    for (;;) {
      const op = operators.find((each) => this.#t.is(each));
      if (op === undefined) return left;
      this.#t.expect(op);
      if (level === 0 && this.#t.take("any", "(")) {
        left = { e: "any", op, left, right: this.expr() };
        this.#t.expect(")");
      } else left = { e: "binary", op, left, right: this.#level(level + 1) };
    }
  }

  #postfix(): Expr {
    let of = this.#primary();
    for (;;) {
      if (this.#t.take("::")) of = { e: "cast", of, type: this.#type() };
      else if (this.#t.take("at", "time", "zone")) of = { e: "call", name: "zoned", args: [of, this.#primary()] };
      else return of;
    }
  }

  #type(): string {
    let type = this.#t.name();
    if (this.#t.take("(")) this.#t.skipParenthesis();
    if (this.#t.take("[", "]")) type += "[]";
    return type;
  }

  #primary(): Expr {
    const { kind, text } = this.#t.peek();
    if (kind === "number") return { e: "value", value: Number(this.#t.next().text) };
    if (kind === "string") return { e: "value", value: this.#t.next().text };
    if (kind === "param") return { e: "param", index: Number(this.#t.next().text) - 1 };
    if (kind === "quoted") return this.#column();
    if (this.#t.take("-")) return { e: "binary", op: "-", left: { e: "value", value: 0 }, right: this.#postfix() };
    if (this.#t.is("(", "select") || this.#t.is("(", "with")) return { e: "scalar", query: this.#parenthesised() };
    if (this.#t.take("(")) {
      const expr = this.expr();
      this.#t.expect(")");
      return expr;
    }
    if (kind !== "word") throw this.#t.unexpected("an expression");
    return this.#keyword(text) ?? (this.#t.peek(1).text === "(" ? this.#call() : this.#column());
  }

  #keyword(text: string): Expr | undefined {
    const values: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };
    if (text in values) {
      this.#t.next();
      return { e: "value", value: values[text] };
    }
    if (this.#t.take("exists")) return { e: "exists", query: this.#parenthesised() };
    if (this.#t.take("interval")) return { e: "call", name: "interval", args: [this.#primary()] };
    if (this.#t.take("case")) return this.#case();
    if (!this.#t.take("array")) return undefined;
    if (this.#t.is("(")) return { e: "arrayOf", query: this.#parenthesised() };
    this.#t.expect("[");
    const items = this.#t.list(() => this.expr());
    this.#t.expect("]");
    return { e: "array", items };
  }

  #case(): Expr {
    const branches: (readonly [Expr, Expr])[] = [];
    while (this.#t.take("when")) {
      const when = this.expr();
      this.#t.expect("then");
      branches.push([when, this.expr()]);
    }
    const otherwise = this.#t.take("else") ? this.expr() : undefined;
    this.#t.expect("end");
    return { e: "case", branches, ...some({ otherwise }) };
  }

  #column(): Expr {
    const name = this.#t.name();
    return this.#t.take(".") ? { e: "column", table: name, name: this.#t.name() } : { e: "column", name };
  }

  #call(): Expr {
    const name = this.#t.name();
    this.#t.expect("(");
    const args = this.#arguments(name);
    this.#t.expect(")");
    if (this.#t.take("over", "(")) {
      if (name !== "row_number") throw this.#t.unexpected("row_number");
      const order = this.#order();
      this.#t.expect(")");
      return { e: "rowNumber", order };
    }
    if (!this.#t.take("filter", "(", "where")) return { e: "call", name, args };
    const filter = this.expr();
    this.#t.expect(")");
    return { e: "call", name, args, filter };
  }

  #arguments(name: string): readonly Expr[] {
    if (this.#t.is(")") || this.#t.take("*")) return [];
    if (name === "extract") this.#t.expect("epoch", "from");
    return this.#t.list(() => this.expr());
  }
}

const negated = (of: Expr, isNegated: boolean): Expr => (isNegated ? { e: "not", of } : of);

/** Members that are absent are left out. */
const some = <T extends object>(members: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
