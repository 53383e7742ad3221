/**
 * Compiles queries as Kysely's own compiler of PostgreSQL's SQL does, but each shape of query once: histories ask the
 * same few hundred by the thousand. Two of one shape differ in their parameters' values alone.
 */
import {
  PostgresDialect,
  PostgresQueryCompiler,
  type CompiledQuery,
  type IdentifierNode,
  type PostgresPool,
  type PrimitiveValueListNode,
  type QueryCompiler,
  type RawNode,
  type ValueNode,
} from "kysely";

type Holder = ValueNode | PrimitiveValueListNode;

interface Shape {
  readonly parts: readonly unknown[];
  readonly sql: string;
  /** Which of the values that were read is each parameter. */
  readonly order: readonly number[];
}

/** A query as it was read: whatever is not the value of a parameter belongs to its shape. */
class Reading {
  readonly parts: unknown[] = [];
  readonly values: unknown[] = [];
  /** What holds each value. */
  readonly holders: Holder[] = [];

  read(part: unknown): void {
    if (typeof part !== "object" || part === null) this.parts.push(part);
    else if (Array.isArray(part)) this.#list(part);
    else this.#node(part as { readonly kind: string });
  }

  #list(list: readonly unknown[]): void {
    this.parts.push(list.length);
    for (const each of list) this.read(each);
  }

  #node(node: { readonly kind: string }): void {
    const { kind } = node;
    this.parts.push(kind);
    if (kind === "IdentifierNode") this.parts.push((node as IdentifierNode).name);
    else if (kind === "ValueNode") this.#value(node as ValueNode);
    else if (kind === "PrimitiveValueListNode") this.#hold(node as Holder, (node as PrimitiveValueListNode).values);
    else if (kind === "RawNode") this.#raw(node as RawNode);
    else
      for (const name in node) {
        if (name === "kind") continue;
        this.parts.push(name);
        this.read(node[name as "kind"]);
      }
  }

  #raw({ sqlFragments, parameters }: RawNode): void {
    // Those of a template are the same array whenever it is evaluated.
    if ("raw" in sqlFragments) this.parts.push(sqlFragments);
    else this.#list(sqlFragments);
    this.#list(parameters);
  }

  #value(node: ValueNode): void {
    if (node.immediate === true) this.parts.push("immediate", node.value);
    else this.#hold(node, [node.value]);
  }

  #hold(holder: Holder, values: readonly unknown[]): void {
    this.parts.push(values.length);
    for (const value of values) {
      this.values.push(value);
      this.holders.push(holder);
    }
  }
}

class Compiler extends PostgresQueryCompiler {
  /** By their numbers of parts. */
  readonly #shapes = new Map<number, Shape[]>();
  /** Of a shape not seen before, in the order in which their values are the parameters. */
  #compiled: Holder[] = [];

  override compileQuery(...[query, id]: Parameters<QueryCompiler["compileQuery"]>): CompiledQuery {
    const reading = new Reading();
    reading.read(query);
    const { values } = reading;
    const { sql, order } = this.#known(reading.parts) ?? this.#new(reading, () => super.compileQuery(query, id).sql);
    return { query, queryId: id, sql, parameters: order.map((at) => values[at]) };
  }

  #known(parts: readonly unknown[]): Shape | undefined {
    return this.#shapes.get(parts.length)?.find((shape) => isSame(shape.parts, parts));
  }

  #new({ parts, holders }: Reading, compile: () => string): Shape {
    this.#compiled = [];
    const sql = compile();
    const order = this.#compiled.flatMap((holder) => {
      const first = holders.indexOf(holder);
      return Array.from({ length: "values" in holder ? holder.values.length : 1 }, (_, at) => first + at);
    });
    const shape = { parts, sql, order };
    this.#shapes.set(parts.length, [...(this.#shapes.get(parts.length) ?? []), shape]);
    return shape;
  }

  protected override visitValue(node: ValueNode): void {
    if (node.immediate !== true) this.#compiled.push(node);
    super.visitValue(node);
  }

  protected override visitPrimitiveValueList(node: PrimitiveValueListNode): void {
    this.#compiled.push(node);
    super.visitPrimitiveValueList(node);
  }
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

const COMPILER = new Compiler();

/** Of a store in memory, for which a query's text is a good part of its work. */
export class SimulatedDialect extends PostgresDialect {
  constructor(pool: PostgresPool) {
    super({ pool });
  }

  override createQueryCompiler(): QueryCompiler {
    return COMPILER;
  }
}
