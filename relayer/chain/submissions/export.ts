/** The writes of an account for its export, newest first. */
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import { parseTimeCursor, timeCursor, type ExportRow } from "../../../protocol/exports";
import type { AccountId } from "../../../protocol/ids";
import type { Db } from "../../store/database";

/** @throws KeywrightError `invalid_value` for a cursor of something else. */
export async function exportWrites(
  db: Db,
  accountId: AccountId,
  after: string | undefined,
  rows: number,
): Promise<ExportRow[]> {
  const micros = sql<string>`(extract(epoch from created_at) * 1000000)::int8::text`;
  let query = db
    .selectFrom("submissions")
    .select(["id", "kind", "state", "transaction_hash", "block_number", "error", "charged", "created_at", "updated_at"])
    .select(micros.as("micros"))
    .where("account_id", "=", accountId)
    .orderBy("created_at", "desc")
    .orderBy("id")
    .limit(rows);
  if (after !== undefined) {
    const cursor = parseTimeCursor(after);
    if (cursor === undefined)
      throw new KeywrightError("invalid_value", "cursor: is not one of a row of this kind of export.");
    const time = sql<Date>`(to_timestamp(0) + ${cursor.micros}::int8 * interval '1 microsecond')`;
    query = query
      .where("created_at", "<=", time)
      .where((where) => where.or([where("created_at", "<", time), where("id", ">", cursor.id)]));
  }
  return (await query.execute()).map((row) => ({
    cursor: timeCursor(row.micros, row.id),
    id: row.id,
    kind: row.kind,
    state: row.state,
    transaction_hash: row.transaction_hash,
    block_number: row.block_number,
    error_code: row.error?.code ?? null,
    charged: row.charged,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }));
}
