/**
 * Names for PostgreSQL statements. A named statement is parsed and planned once per connection, which is most of what a
 * small one costs. Only repeated texts get a name, up to a limit: lists of different lengths are different texts.
 */
const MAX_NAMED = 200;
const MAX_COUNTED = 2_000;
const NAMED_FROM = 3;

export class StatementNames {
  readonly #uses = new Map<string, number>();
  readonly #names = new Map<string, string>();
  #generation = 0;

  /** Undefined for a text without a name (yet). */
  of(text: string): string | undefined {
    const name = this.#names.get(text);
    if (name !== undefined || this.#names.size >= MAX_NAMED) return name;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    if (uses < NAMED_FROM) {
      if (this.#uses.size >= MAX_COUNTED) this.#uses.clear();
      this.#uses.set(text, uses);
      return undefined;
    }
    this.#uses.delete(text);
    const fresh = `s${this.#generation}_${this.#names.size}`;
    this.#names.set(text, fresh);
    return fresh;
  }

  /** Renames all statements, so that each is parsed again after a schema change. */
  forget(): void {
    this.#generation += 1;
    this.#names.clear();
  }
}

/** A newer relayer added a column to a table from which a prepared statement selects all columns. */
export function isStalePlan(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return code === "0A000" && typeof message === "string" && message.includes("cached plan must not change result type");
}
