import type { Generated } from "kysely";
import type { SubmissionState } from "../../chain/submissions/states";
import type { Int8, Json, Timestamp } from "./types";

/** A duty that one instance at a time has for all. */
export interface ChainDutiesTable {
  name: string;
  instance_id: string | null;
}

/** A payer: 0 is the admin payer, who only tops the others up. */
export interface LanesTable {
  payer: number;
  address: string;
  /** The nonce the next submission takes; changed only by statements that name its old value or lock the row. */
  next_nonce: Int8;
  /** Beyond the wanted number of payers: takes nothing new. */
  draining: Generated<boolean>;
  /** The contract lists it as an API payer. */
  registered: Generated<boolean>;
  /** Wei, decimal. */
  balance_wei: Generated<string>;
  observed_at: Timestamp | null;
}

export interface AccountTurnsTable {
  account_id: string;
  /** The lane the account sticks to. */
  payer: number | null;
  /** Raised by each write: whoever simulated before another's write must simulate again. */
  turn: Generated<Int8>;
  /** Block of the last write that had an outcome: reads are served from there on. */
  last_block: Generated<Int8>;
}

export interface KeptFailure {
  code: string;
  detail: string;
  facts: Record<string, unknown>;
}

export interface SubmissionsTable {
  id: string;
  /** Null for our own: batches, fillers of a nonce, top-ups. */
  account_id: string | null;
  kind: string;
  state: SubmissionState;
  payer: number;
  /** The row of the batch it travels in, which holds nonce and attempts for it; null where the row holds its own. */
  batch_id: Generated<string | null>;
  /** Which call of the batch it is, from 0. */
  place: Generated<number | null>;
  /** Null in a batch, and once it was given back. */
  nonce: Int8 | null;
  calldata: string | null;
  tag: string | null;
  gas_limit: Int8 | null;
  /** Top-ups only. */
  to_payer: number | null;
  amount_wei: string | null;
  idempotency_key: string | null;
  /** Came with a reservation, so that the books want to hear of it. */
  billed: Generated<boolean>;
  /** To be given up: its nonce is filled with a transaction that does nothing. */
  cancelled: Generated<boolean>;
  /** The instance that watches it; null = whoever comes first. */
  instance_id: string | null;
  request_id: string | null;
  transaction_hash: string | null;
  block_number: Int8 | null;
  block_hash: string | null;
  result: Json<Record<string, string>> | null;
  error: Json<KeptFailure> | null;
  charged: Generated<boolean>;
  /** What had been answered before a reorg. */
  before: Json<{ result?: Record<string, string>; error?: KeptFailure }> | null;
  created_at: Timestamp;
  updated_at: Timestamp;
}

/** A signed transaction of a submission; all of one submission have its nonce, so that at most one of them can land. */
export interface SubmissionAttemptsTable {
  hash: string;
  submission_id: string;
  does: "write" | "nothing";
  raw: string;
  max_fee: string;
  priority_fee: string;
  created_at: Timestamp;
}

export interface ChainSettingsTable {
  name: string;
  value: Json<unknown>;
}

/** The newest blocks the follower has read; the newest one is where it stands. */
export interface FollowedBlocksTable {
  number: Int8;
  hash: string;
}

/** Append-only: an event that a reorg took away is followed by the same with `removed`. */
export interface ChainEventsTable {
  cursor: Generated<Int8>;
  /** Null for events of the contract itself. */
  account_id: string | null;
  name: string;
  block_number: Int8;
  block_hash: string;
  transaction_hash: string;
  log_index: number;
  args: Json<Record<string, unknown>>;
  /** The owner the event names, if it names one. */
  owner: string | null;
  removed: Generated<boolean>;
  /** A later entry takes this one back, so that it counts no more. */
  retracted: Generated<boolean>;
}

export interface ChainTables {
  chain_duties: ChainDutiesTable;
  chain_settings: ChainSettingsTable;
  lanes: LanesTable;
  account_turns: AccountTurnsTable;
  submissions: SubmissionsTable;
  submission_attempts: SubmissionAttemptsTable;
  followed_blocks: FollowedBlocksTable;
  chain_events: ChainEventsTable;
}
