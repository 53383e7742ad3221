/** What the store's statements are made of: the part of PostgreSQL's SQL that the relayer uses. */

export type Expr =
  | { readonly e: "value"; readonly value: unknown }
  | { readonly e: "param"; readonly index: number }
  | { readonly e: "column"; readonly table?: string; readonly name: string }
  | { readonly e: "star"; readonly table?: string }
  | { readonly e: "call"; readonly name: string; readonly args: readonly Expr[]; readonly filter?: Expr }
  | { readonly e: "rowNumber"; readonly order: readonly Order[] }
  | { readonly e: "binary"; readonly op: string; readonly left: Expr; readonly right: Expr }
  | { readonly e: "not"; readonly of: Expr }
  | { readonly e: "isNull"; readonly of: Expr }
  | { readonly e: "in"; readonly of: Expr; readonly list: readonly Expr[] }
  | { readonly e: "inQuery"; readonly of: Expr; readonly query: Query }
  | { readonly e: "any"; readonly op: string; readonly left: Expr; readonly right: Expr }
  | { readonly e: "exists"; readonly query: Query }
  | { readonly e: "scalar"; readonly query: Query }
  | { readonly e: "arrayOf"; readonly query: Query }
  | { readonly e: "array"; readonly items: readonly Expr[] }
  | { readonly e: "case"; readonly branches: readonly (readonly [Expr, Expr])[]; readonly otherwise?: Expr }
  | { readonly e: "cast"; readonly of: Expr; readonly type: string };

export interface Order {
  readonly by: Expr;
  readonly isDescending: boolean;
}

export interface Item {
  readonly expr: Expr;
  readonly as?: string;
}

export interface Source {
  readonly join: "cross" | "inner" | "left";
  readonly alias: string;
  readonly table?: string;
  readonly query?: Query;
  readonly call?: Expr;
  /** Of `jsonb_to_recordset`: the columns of its rows. */
  readonly columns?: readonly string[];
  readonly on?: Expr;
  readonly using?: readonly string[];
}

export interface Select {
  readonly do: "select";
  readonly distinct: boolean | readonly Expr[];
  readonly items: readonly Item[];
  readonly from: readonly Source[];
  readonly where?: Expr;
  readonly group?: readonly Expr[];
  readonly order: readonly Order[];
  readonly limit?: Expr;
  readonly union?: Select;
}

export type Assignments = readonly { readonly column: string; readonly to: Expr }[];

export interface Insert {
  readonly do: "insert";
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Expr[])[];
  readonly query?: Query;
  readonly conflict?: { readonly columns?: readonly string[]; readonly set?: Assignments; readonly where?: Expr };
  readonly returning?: readonly Item[];
}

export interface Update {
  readonly do: "update";
  readonly table: string;
  readonly alias: string;
  readonly set: Assignments;
  readonly from: readonly Source[];
  readonly where?: Expr;
  readonly returning?: readonly Item[];
}

export interface Delete {
  readonly do: "delete";
  readonly table: string;
  readonly alias: string;
  readonly from: readonly Source[];
  readonly where?: Expr;
  readonly returning?: readonly Item[];
}

export interface Query {
  readonly ctes: readonly { readonly name: string; readonly query: Query }[];
  readonly body: Select | Insert | Update | Delete;
}

export interface Token {
  readonly kind: "word" | "quoted" | "string" | "number" | "param" | "op" | "end";
  readonly text: string;
}

const TOKEN = new RegExp(
  [
    /\s+|--[^\n]*/,
    /([a-zA-Z_][a-zA-Z0-9_]*)|"([^"]+)"|'((?:[^']|'')*)'|(\d+(?:\.\d+)?)|\$(\d+)/,
    /(<>|<=|>=|::|->>|->|\|\||!=|[-+*/%<>=(),.[\];?])/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gy",
);

export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (found === null) throw new SyntaxError(`cannot read ${text.slice(at, at + 40)}`);
    const [, word, quoted, string, number, param, op] = found;
    if (word !== undefined) tokens.push({ kind: "word", text: word.toLowerCase() });
    else if (quoted !== undefined) tokens.push({ kind: "quoted", text: quoted });
    else if (string !== undefined) tokens.push({ kind: "string", text: string.replaceAll("''", "'") });
    else if (number !== undefined) tokens.push({ kind: "number", text: number });
    else if (param !== undefined) tokens.push({ kind: "param", text: param });
    else if (op !== undefined) tokens.push({ kind: "op", text: op });
  }
  return [...tokens, { kind: "end", text: "" }];
}

/** A position in the tokens of a statement. */
export class Tokens {
  #at = 0;
  readonly #tokens: readonly Token[];

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  peek(ahead = 0): Token {
    return this.#tokens[this.#at + ahead] ?? { kind: "end", text: "" };
  }

  next(): Token {
    const token = this.peek();
    this.#at += 1;
    return token;
  }

  /** Whether these words or signs follow. */
  is(...texts: readonly string[]): boolean {
    return texts.every((text, ahead) => {
      const token = this.peek(ahead);
      return (token.kind === "word" || token.kind === "op") && token.text === text;
    });
  }

  take(...texts: readonly string[]): boolean {
    if (!this.is(...texts)) return false;
    this.#at += texts.length;
    return true;
  }

  expect(...texts: readonly string[]): void {
    if (!this.take(...texts)) throw this.unexpected(texts.join(" "));
  }

  name(): string {
    const { kind, text } = this.next();
    if (kind !== "word" && kind !== "quoted") throw this.unexpected("a name");
    return text;
  }

  list<T>(item: () => T): readonly T[] {
    const items = [item()];
    while (this.take(",")) items.push(item());
    return items;
  }

  /** Skips to the end of the parenthesis that was just opened. */
  skipParenthesis(): void {
    for (let depth = 1; depth > 0;) {
      const { kind, text } = this.next();
      if (kind === "end") throw this.unexpected(")");
      if (kind === "op" && text === "(") depth += 1;
      if (kind === "op" && text === ")") depth -= 1;
    }
  }

  unexpected(wanted: string): SyntaxError {
    const around = this.#tokens.slice(Math.max(0, this.#at - 8), this.#at + 4).map(({ text }) => text);
    return new SyntaxError(`the store's double does not understand “${around.join(" ")}”: wanted ${wanted}`);
  }
}
