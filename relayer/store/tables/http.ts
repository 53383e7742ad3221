import type { Json, Timestamp } from "./types";

/** A request named by its sender, and what was answered; kept for a day. Never a secret, never a body. */
export interface IdempotentRequestsTable {
  /** Hash of route and account, key or address. */
  scope: string;
  key: string;
  body_hash: string;
  /** running: an instance is at it · open: its outcome was not known when it was answered · done: `answer` is kept. */
  state: "running" | "open" | "done";
  instance_id: string;
  /** The name of the act itself: a retry of an act whose outcome is not known carries the same one. */
  attempt_id: string;
  /** The beginning or takeover that acts now; null in rows of older relayers. */
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

/** Points of the rate limiter's windows, shared by all relayers; its layout is rate-limiter-flexible's. */
export interface RateLimitsTable {
  key: string;
  points: number;
  expire: number | null;
}

/** Tables of the HTTP face: idempotent answers, known CIDs, rate limits. */
export interface HttpTables {
  idempotent_requests: IdempotentRequestsTable;
  known_cids: KnownCidsTable;
  rate_limits: RateLimitsTable;
}
