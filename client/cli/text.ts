/**
 * Human-readable output: tables and field lists. Strips control characters, so that a service or a chain cannot control
 * the terminal.
 */

/** One line without control characters, cut at `most`. */
export function oneLine(value: string, most = 400): string {
  const plain = value.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ");
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}

/** Several lines, each free of control characters: logs of an action. */
export const lines = (value: string): string =>
  value
    .split("\n")
    .map((line) => line.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " "))
    .join("\n");

/**
 * JSON that shows as it is in a terminal: what would control one is escaped, which means the same to programs. JSON
 * itself escapes only the first of these characters.
 */
export const jsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(/[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu, (one) =>
    one
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function cell(value: unknown): string {
  if (value === undefined || value === null || value === "") return "-";
  if (typeof value === "string") return oneLine(value, Infinity);
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(cell).join(",");
  return isRecord(value) ? oneLine(JSON.stringify(value), Infinity) : String(value);
}

/**
 * Rows as a table; columns that repeat another one are left out, and hashes are shortened when `width` is too small for
 * them.
 */
export function table(rows: readonly Record<string, unknown>[], width = Infinity): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = names.map((name) => ({ name: oneLine(name), cells: rows.map((row) => cell(row[name])) }));
  const seen = new Set<string>();
  const told = columns.filter(({ cells }) => {
    const text = cells.join("\n");
    const isNew = cells.every((one) => one.length < 20) || !seen.has(text);
    seen.add(text);
    return isNew;
  });
  const widthOf = (all: typeof columns): number =>
    all.reduce((sum, { name, cells }) => sum + 2 + Math.max(name.length, ...cells.map((one) => one.length)), 0);
  const shown = widthOf(told) <= width ? told : told.map(({ name, cells }) => ({ name, cells: cells.map(shortened) }));
  const widths = shown.map(({ name, cells }) => Math.max(name.length, ...cells.map((one) => one.length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((one, i) => one.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  const body = rows.map((_, i) => line(shown.map(({ cells }) => cells[i] ?? "")));
  return `${[line(shown.map(({ name }) => name.toUpperCase())), ...body].join("\n")}\n`;
}

const shortened = (value: string): string =>
  value.replace(/0x[0-9a-fA-F]{40,}/g, (hex) => `${hex.slice(0, 8)}…${hex.slice(-6)}`);

/** Lists of records, such as events, are tables below the other members. */
function fields(record: Record<string, unknown>, columns?: number): string {
  const isTable = ([, value]: [string, unknown]): boolean => Array.isArray(value) && value.some(isRecord);
  const tables = Object.entries(record).filter(isTable);
  const entries = Object.entries(record).filter((entry) => !isTable(entry));
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  return [
    ...entries.map(([name, value]) => `${oneLine(name).padEnd(width)}  ${cell(value)}\n`),
    ...tables.map(([name, rows]) => `\n${oneLine(name)}\n${table(rows as Record<string, unknown>[], columns)}`),
  ].join("");
}

/** Formats any answer for people. */
export function readable(value: unknown, width?: number): string {
  if (Array.isArray(value))
    return value.every(isRecord) && value.length > 0
      ? table(value, width)
      : value.length === 0
        ? "(none)\n"
        : `${value.map(cell).join("\n")}\n`;
  return isRecord(value) ? fields(value, width) : `${cell(value)}\n`;
}
