/** The account's whole history, answer by answer: a connection that breaks costs the rows of one answer at most. */
import type { Operations } from "./operations";
import type { CallOptions } from "./transport";
import type { ExportKind, ExportRow } from "../protocol/exports";

export interface ExportOptions extends CallOptions {
  /** Default: jsonl. */
  readonly format?: "jsonl" | "csv";
  /** The `cursor` of a row: only what is older follows. */
  readonly cursor?: string;
}

type Exporter = Pick<Operations<"exportHistory">, "exportHistory">;

/** Text to write one after the other into one file; of CSV only the first piece has the header. */
export async function* exportedText(
  client: Exporter,
  kind: ExportKind,
  { format = "jsonl", cursor, ...options }: ExportOptions = {},
): AsyncGenerator<string, void, undefined> {
  for (let after = cursor; ;) {
    const from = after === undefined ? {} : { cursor: after };
    const text = await client.exportHistory({ kind, format, ...from }, options);
    const isFirst = after === cursor;
    const headerEnds = format === "csv" ? text.indexOf("\n") + 1 : 0;
    const rows = text.slice(headerEnds);
    if (isFirst) yield cursor === undefined ? text : rows;
    else yield rows;
    if (rows === "") return;
    after = lastCursor(rows, format);
  }
}

/** Every row, newest first: `for await (const run of exportedRows(client, "runs"))`. */
export async function* exportedRows(
  client: Exporter,
  kind: ExportKind,
  options: Omit<ExportOptions, "format"> = {},
): AsyncGenerator<ExportRow, void, undefined> {
  for await (const text of exportedText(client, kind, { ...options, format: "jsonl" }))
    for (const line of text.split("\n").slice(0, -1)) yield JSON.parse(line) as ExportRow;
}

/** Cursors come first in every row and need no quotes. */
function lastCursor(rows: string, format: "jsonl" | "csv"): string {
  const last = rows.trimEnd().split("\n").at(-1) ?? "";
  return format === "csv" ? last.slice(0, last.indexOf(",")) : (JSON.parse(last) as { cursor: string }).cursor;
}
