import type { Int8, Json, Timestamp } from "./types";

/** What is stored of a run: never its parameters, logs or response. */
export interface RunRecordsTable {
  /** The run's reservation: a run is recorded once. */
  run_id: string;
  account_id: string;
  /** The key that ran it; the account's own id for its owner. */
  key_id: string;
  action_hash: string;
  cid: string;
  /** `succeeded`, or the code of the run's error. */
  outcome: string;
  request_id: string;
  duration_ms: number;
  cost_cents: Int8;
  /** Addresses. */
  pkps_used: Json<string[]>;
  started_at: Timestamp;
  /** Hex of the SHA-256 of the run's receipt. */
  receipt_sha256: string;
  /** The trigger that made the run. */
  trigger_id: string | null;
  /** Of a failed run, for as long as details are kept. */
  error_message: string | null;
}

/** Number of records per combination of filters; the empty text stands for "any". */
export interface RunCountsTable {
  account_id: string;
  key_id: string;
  action_hash: string;
  outcome: string;
  runs: Int8;
}

/** Sums per day (UTC) and key. */
export interface RunDaysTable {
  account_id: string;
  day: string;
  key_id: string;
  runs: Int8;
  failed: Int8;
  cost_cents: Int8;
  duration_ms: number;
}

/** Ends of runs that have not become records yet. */
export interface RunEndsTable extends RunRecordsTable {
  /** In insertion order. */
  place: Int8;
}

/** Code by CID, available to the executors of all machines. */
export interface SharedCodeTable {
  cid: string;
  code: Buffer;
  bytes: Int8;
  touched_at: Timestamp;
}

/** Accounts whose runs named the code, each with its last use (to the hour). */
export interface SharedCodeUsesTable {
  account_id: string;
  cid: string;
  bytes: Int8;
  used_at: Timestamp;
}

export interface RunTables {
  run_ends: RunEndsTable;
  shared_code: SharedCodeTable;
  shared_code_uses: SharedCodeUsesTable;
  run_records: RunRecordsTable;
  run_counts: RunCountsTable;
  run_days: RunDaysTable;
}
