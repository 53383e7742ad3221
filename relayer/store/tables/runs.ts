import type { Int8, Json, Timestamp } from "./types";

/** What is kept of a run: never its parameters, logs or response. */
export interface RunRecordsTable {
  /** Of the run's reservation: a run is recorded once. */
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
}

/** How many records each combination of filters finds; the empty text stands for "any". */
export interface RunCountsTable {
  account_id: string;
  key_id: string;
  action_hash: string;
  outcome: string;
  runs: Int8;
}

/** Sums of a day (UTC) and a key. */
export interface RunDaysTable {
  account_id: string;
  day: string;
  key_id: string;
  runs: Int8;
  failed: Int8;
  cost_cents: Int8;
  duration_ms: number;
}

export interface RunTables {
  run_records: RunRecordsTable;
  run_counts: RunCountsTable;
  run_days: RunDaysTable;
}
