/** The writes of an account for its export, newest first. */
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import { parseTimeCursor, timeCursor, type ExportRow } from "../../../protocol/exports";
import type { AccountId } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import { carriedWrites, viewOf } from "./rows";

/** @throws KeywrightError `invalid_value` for a cursor of something else. */
export async function exportWrites(
  db: Db,
  accountId: AccountId,
  after: string | undefined,
  rows: number,
): Promise<ExportRow[]> {
  let query = carriedWrites(db)
    .select(sql<string>`(extract(epoch from writes.created_at) * 1000000)::int8::text`.as("micros"))
    .where("writes.account_id", "=", accountId)
    .orderBy("writes.created_at", "desc")
    .orderBy("writes.id")
    .limit(rows);
  if (after !== undefined) {
    const cursor = parseTimeCursor(after);
    if (cursor === undefined)
      throw new KeywrightError("invalid_value", "cursor: is not one of a row of this kind of export.");
    const time = sql<Date>`(to_timestamp(0) + ${cursor.micros}::int8 * interval '1 microsecond')`;
    query = query
      .where("writes.created_at", "<=", time)
      .where((where) => where.or([where("writes.created_at", "<", time), where("writes.id", ">", cursor.id)]));
  }
  return (await query.execute()).map((row) => ({
    cursor: timeCursor(row.micros, row.id),
    id: row.id,
    kind: row.kind,
    state: viewOf(row).state,
    transaction_hash: row.hash,
    block_number: row.block_number,
    error_code: row.error?.code ?? null,
    charged: row.charged,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }));
}
