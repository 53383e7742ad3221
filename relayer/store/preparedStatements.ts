/**
 * Prepares the embedded database's statements once per text: later executions take one round trip without parsing and
 * planning, which is most of what a small statement costs there.
 */
import type { messages, PGlite } from "@electric-sql/pglite";
import { serialize } from "pg-protocol";

/** More than the relayer's distinct statements; lists of varying lengths can exceed it, then the oldest is evicted. */
const MAX_STATEMENTS = 400;

interface Statement {
  readonly name: string;
  readonly parameterTypes: readonly number[];
  readonly columns: readonly { readonly name: string; readonly dataTypeID: number }[];
}

/** The part of a `pg` result that Kysely reads. */
export interface QueryAnswer {
  readonly command: string;
  readonly rowCount: number;
  readonly rows: readonly Record<string, unknown>[];
}

export class PreparedStatements {
  readonly #statements = new Map<string, Statement>();
  #made = 0;
  readonly #lite: PGlite;

  constructor(lite: PGlite) {
    this.#lite = lite;
  }

  async query(sql: string, parameters: readonly unknown[]): Promise<QueryAnswer> {
    const statement = this.#statements.get(sql) ?? (await this.#prepare(sql));
    const values = parameters.map((value, index) => this.#serialized(value, statement.parameterTypes[index] ?? 0));
    return answerOf(
      await this.#send(serialize.bind({ statement: statement.name, values }), serialize.execute({})),
      (fields) => this.#row(statement.columns, fields),
    );
  }

  async #prepare(text: string): Promise<Statement> {
    const name = `s${++this.#made}`;
    const answers = await this.#send(serialize.parse({ name, text }), serialize.describe({ type: "S", name }));
    const parameters = find<messages.ParameterDescriptionMessage>(answers, "parameterDescription");
    const columns = find<messages.RowDescriptionMessage>(answers, "rowDescription");
    const statement = { name, parameterTypes: parameters?.dataTypeIDs ?? [], columns: columns?.fields ?? [] };
    this.#statements.set(text, statement);
    await this.#forgetOldest();
    return statement;
  }

  async #forgetOldest(): Promise<void> {
    const [oldest] = this.#statements;
    if (oldest === undefined || this.#statements.size <= MAX_STATEMENTS) return;
    this.#statements.delete(oldest[0]);
    await this.#send(serialize.close({ type: "S", name: oldest[1].name }));
  }

  /** One round trip; throws the database's error. `syncToFs` is for virtual file systems; this one is real. */
  #send(...parts: Buffer[]): Promise<messages.BackendMessage[]> {
    return this.#lite.execProtocolStream(Buffer.concat([...parts, serialize.sync()]), { syncToFs: false });
  }

  #serialized(value: unknown, type: number): string | null {
    if (value === null || value === undefined) return null;
    const serializer = this.#lite.serializers[type];
    return serializer === undefined ? String(value) : (serializer(value) as string);
  }

  #row(columns: Statement["columns"], fields: readonly (string | null)[]): Record<string, unknown> {
    return Object.fromEntries(
      columns.map(({ name, dataTypeID }, index) => [name, this.#parsed(fields[index] ?? null, dataTypeID)]),
    );
  }

  #parsed(text: string | null, type: number): unknown {
    const parser = this.#lite.parsers[type];
    return text === null || parser === undefined ? text : (parser(text, type) as unknown);
  }
}

function answerOf(
  answers: readonly messages.BackendMessage[],
  rowOf: (fields: readonly (string | null)[]) => Record<string, unknown>,
): QueryAnswer {
  const words = find<messages.CommandCompleteMessage>(answers, "commandComplete")?.text.split(" ") ?? [];
  return {
    command: words[0] ?? "",
    rowCount: Number(words.at(-1)) || 0,
    rows: answers
      .filter((message): message is messages.DataRowMessage => message.name === "dataRow")
      .map(({ fields }) => rowOf(fields)),
  };
}

function find<T extends messages.BackendMessage>(
  answers: readonly messages.BackendMessage[],
  name: T["name"],
): T | undefined {
  return answers.find((message): message is T => message.name === name);
}
