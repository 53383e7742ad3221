/** The writes of an account for its export, newest first. */
import { timeCursor, type ExportRow } from "../../../protocol/exports";
import type { AccountId } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import { isAfter, microsOf } from "../../store/timeCursor";
import { carriedWrites } from "../submissions/rows";
import { viewOf } from "./submissionView";

/** @throws KeywrightError `invalid_value` for a cursor of something else. */
export async function exportWrites(
  db: Db,
  accountId: AccountId,
  after: string | undefined,
  rows: number,
): Promise<ExportRow[]> {
  const writes = carriedWrites(db)
    .select(microsOf("writes.created_at").as("micros"))
    .where("writes.account_id", "=", accountId)
    .where(isAfter(after, "writes.created_at", "writes.id"))
    .orderBy("writes.created_at", "desc")
    .orderBy("writes.id")
    .limit(rows);
  return (await writes.execute()).map((row) => ({
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
