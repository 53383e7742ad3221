/** What an export contains. Every row begins with its cursor, after which the next answer goes on. */
export const EXPORT_COLUMNS = {
  runs: [
    ...["cursor", "run_id", "request_id", "api_key_hash", "action_ipfs_cid", "pkps_used", "outcome", "started_at"],
    ...["duration_ms", "cost_cents", "receipt_sha256"],
  ],
  writes: [
    ...["cursor", "id", "kind", "state", "transaction_hash", "block_number", "error_code", "charged", "created_at"],
    "updated_at",
  ],
  postings: ["cursor", "id", "kind", "amount_cents", "reference", "api_key_hash", "created_at"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ExportKind = keyof typeof EXPORT_COLUMNS;
export const EXPORT_KINDS = Object.keys(EXPORT_COLUMNS) as [ExportKind, ...ExportKind[]];

/** A null is an empty cell of CSV. */
export type ExportRow = Readonly<Record<string, string | number | boolean | readonly string[] | null>>;

/** A position among rows ordered by time, newest first, then by id: `<microseconds>.<id>`. */
export const timeCursor = (micros: string, id: string): string => `${micros}.${id}`;

/** Undefined for anything else. */
export function parseTimeCursor(text: string): { readonly micros: string; readonly id: string } | undefined {
  const [, micros = "", id = ""] = /^(\d{1,17})\.([\w-]{1,64})$/.exec(text) ?? [];
  return micros === "" ? undefined : { micros, id };
}
