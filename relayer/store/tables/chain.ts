import type { Generated } from "kysely";
import type { TransactionState, WriteState } from "../../chain/submissions/states";
import type { Int8, Json, Timestamp } from "./types";

/** Tasks that one instance performs for all; the table keeps its original name. */
export interface ChainDutiesTable {
  name: string;
  instance_id: string | null;
}

/** A payer: 0 is the admin payer, which only tops up the others. */
export interface LanesTable {
  payer: number;
  address: string;
  /** The nonce of the next submission; changed only by statements that compare its old value or lock the row. */
  next_nonce: Int8;
  /** Exceeds the wanted number of payers: accepts nothing new. */
  draining: Generated<boolean>;
  /** The contract lists it as an API payer. */
  registered: Generated<boolean>;
  /** Wei, decimal. */
  balance_wei: Generated<string>;
}

export interface AccountTurnsTable {
  /** An account id, or the signer of forward requests, whose writes are serialized too. */
  account_id: string;
  /** Incremented by each write: a write simulated before another's must be simulated again. */
  turn: Generated<Int8>;
  /** Block of the last write with an outcome: reads are served from that block or later. */
  last_block: Generated<Int8>;
}

export interface KeptFailure {
  code: string;
  detail: string;
  facts: Record<string, unknown>;
}

/** A nonce of a payer, and what became of it. */
export interface TransactionsTable {
  id: string;
  payer: number;
  /** Null once it was given back. */
  nonce: Int8 | null;
  purpose: "writes" | "noop" | "top_up";
  state: TransactionState;
  gas_limit: Int8;
  /** Top-ups only. */
  to_payer: number | null;
  amount_wei: string | null;
  /** A no-op is to use its nonce. */
  abandon: Generated<boolean>;
  /** The instance that monitors it; null = any instance may take it. */
  instance_id: string | null;
  request_id: string | null;
  /** Of the attempt that was mined, and its block. */
  hash: string | null;
  block_number: Int8 | null;
  block_hash: string | null;
  /** Of a displaced one: the block of the transaction that has its nonce. */
  displaced_in: Int8 | null;
  created_at: Timestamp;
  updated_at: Timestamp;
}

/** A signed attempt at a transaction; all have its nonce, so that at most one can be mined. */
export interface AttemptsTable {
  hash: string;
  transaction_id: string;
  /** It only uses the nonce. */
  is_noop: boolean;
  raw: string;
  max_fee: string;
  priority_fee: string;
  created_at: Timestamp;
}

/** What an account asked for. */
export interface WritesTable {
  id: string;
  account_id: string;
  kind: string;
  state: WriteState;
  /** The transaction that carries it now, or was the last to. */
  transaction_id: string;
  /** Index of its call in the transaction, from 0. */
  place: number;
  /** Calldata; a forward request as encoded by `encodeForward` where there is a signer. */
  calldata: string | null;
  tag: string | null;
  /** The owner who signed it as a forward request. */
  signer: string | null;
  idempotency_key: string | null;
  /** Has a credit reservation, so credits must receive its outcome. */
  billed: boolean;
  request_id: string | null;
  result: Json<Record<string, string>> | null;
  error: Json<KeptFailure> | null;
  /** It has paid its price: there is a posting, which no later one has taken back. */
  charged: Generated<boolean>;
  /** The outcome reported before a reorg. */
  before: Json<{ result?: Record<string, string>; error?: KeptFailure }> | null;
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface ChainSettingsTable {
  name: string;
  value: Json<unknown>;
}

/** The newest blocks the follower has read; the newest is its position. */
export interface FollowedBlocksTable {
  number: Int8;
  hash: string;
  read_at: Timestamp;
}

/** Append-only: an event undone by a reorg, or listed too early, is followed by a copy with `removed`. */
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
  /** A later row removes this event, so it no longer counts. */
  retracted: Generated<boolean>;
}

export interface ChainTables {
  chain_duties: ChainDutiesTable;
  chain_settings: ChainSettingsTable;
  lanes: LanesTable;
  account_turns: AccountTurnsTable;
  transactions: TransactionsTable;
  attempts: AttemptsTable;
  writes: WritesTable;
  followed_blocks: FollowedBlocksTable;
  chain_events: ChainEventsTable;
}
