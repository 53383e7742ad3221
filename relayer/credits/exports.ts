/** Runs and postings of an account for its export, newest first. */
import { timeCursor, type ExportRow } from "../../protocol/exports";
import type { AccountId } from "../../protocol/ids";
import type { Db } from "../store/database";
import { isAfter, microsOf, wrongCursor } from "../store/timeCursor";
import { recordEnds } from "./runRecords";

export class CreditExports {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** @throws KeywrightError `invalid_value` for a cursor of something else. */
  async runs(accountId: AccountId, after: string | undefined, rows: number): Promise<ExportRow[]> {
    await recordEnds(this.#db);
    const runs = this.#db
      .selectFrom("run_records")
      .select(["run_id", "request_id", "key_id", "cid", "pkps_used", "outcome", "started_at", "duration_ms"])
      .select(["cost_cents", "receipt_sha256", microsOf("started_at").as("micros")])
      .where("account_id", "=", accountId)
      .where(isAfter(after, "started_at", "run_id"))
      .orderBy("started_at", "desc")
      .orderBy("run_id")
      .limit(rows);
    return (await runs.execute()).map((row) => ({
      cursor: timeCursor(row.micros, row.run_id),
      run_id: row.run_id,
      request_id: row.request_id,
      api_key_hash: row.key_id,
      action_ipfs_cid: row.cid,
      pkps_used: row.pkps_used as string[],
      outcome: row.outcome,
      started_at: row.started_at.toISOString(),
      duration_ms: row.duration_ms,
      cost_cents: row.cost_cents,
      receipt_sha256: row.receipt_sha256,
    }));
  }

  /** @throws KeywrightError `invalid_value` for a cursor of something else. */
  async postings(accountId: AccountId, after: string | undefined, rows: number): Promise<ExportRow[]> {
    let query = this.#db
      .selectFrom("ledger_entries")
      .select(["id", "kind", "amount_cents", "reference", "key_id", "created_at"])
      .where("account_id", "=", accountId)
      .orderBy("id", "desc")
      .limit(rows);
    if (after !== undefined) {
      if (!/^[1-9]\d{0,15}$/.test(after)) wrongCursor();
      query = query.where("id", "<", Number(after));
    }
    return (await query.execute()).map((row) => ({
      cursor: String(row.id),
      id: String(row.id),
      kind: row.kind,
      amount_cents: row.amount_cents,
      reference: row.reference,
      api_key_hash: row.key_id,
      created_at: row.created_at.toISOString(),
    }));
  }
}
