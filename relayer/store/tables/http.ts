import type { Json, Timestamp } from "./types";

/** A request named by its client, and its response; kept for a day. Never a secret, never a request body. */
export interface IdempotentRequestsTable {
  /** Hash of route and account, key or address. */
  scope: string;
  key: string;
  body_hash: string;
  /**
   * running: an instance is processing it · open: its outcome was unknown when it was answered · done: `answer` is
   * stored.
   */
  state: "running" | "open" | "done";
  instance_id: string;
  /** Id of the operation itself: retries of an operation with unknown outcome reuse it. */
  attempt_id: string;
  /** The current beginning or takeover; null in rows of older relayers. */
  claim_id: string | null;
  status: number | null;
  answer: Json<unknown> | null;
  created_at: Timestamp;
}

/** CIDs whose hash the contract knows, so that lists can show them. */
export interface KnownCidsTable {
  action_hash: string;
  cid: string;
}

/** Points of the rate limiter's windows, shared by all relayers; in rate-limiter-flexible's layout. */
export interface RateLimitsTable {
  key: string;
  points: number;
  expire: number | null;
}

/** Uses of the budget of new accounts and keys, which all relayers share. */
export interface MintCountsTable {
  /** `all`, or a keyed hash of a network. */
  name: string;
  points: number;
  counted_at: Timestamp;
}

/** Tables of the HTTP API: idempotent requests, known CIDs, rate limits. */
export interface HttpTables {
  idempotent_requests: IdempotentRequestsTable;
  known_cids: KnownCidsTable;
  rate_limits: RateLimitsTable;
  fleeting_rates: RateLimitsTable;
  mint_counts: MintCountsTable;
}
