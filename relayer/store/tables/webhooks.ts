import type { Generated } from "kysely";
import type { Int8, Json, Timestamp } from "./types";

export interface WebhooksTable {
  id: string;
  account_id: string;
  /** Null where the messages are fetched over the API instead. */
  url: string | null;
  /** Types, families (`run.*`) or `*`. */
  events: Json<string[]>;
  description: string;
  /** `credit.low` tells of a balance that falls below this. */
  credit_low_cents: Generated<Int8>;
  state: Generated<"on" | "off">;
  off_reason: "owner" | "owner_changed" | "unreachable" | "gone" | "too_many" | null;
  succeeded_at: Timestamp | null;
  /** Since when no attempt has succeeded; null after a success. */
  failing_since: Timestamp | null;
  /** When its messages were fetched last, where it has no URL. */
  asked_at: Timestamp;
  created_at: Timestamp;
}

/** The outbox: what happened to an account, if one of its webhooks wanted to know. Filled by triggers. */
export interface WebhookEventsTable {
  place: Generated<Int8>;
  /** `msg_` and 32 hex digits: the message's id, the same in every attempt. */
  id: string;
  account_id: string;
  type: string;
  data: Json<Record<string, unknown>>;
  created_at: Timestamp;
}

export interface WebhookDeliveriesTable {
  webhook_id: string;
  place: Int8;
  state: Generated<"pending" | "delivered" | "failed">;
  attempts: Generated<number>;
  /** While pending: the next attempt. An attempt moves it to where another relayer may repeat it. */
  due_at: Timestamp;
  attempted_at: Timestamp | null;
  duration_ms: number | null;
  /** Of the last attempt: the status and the beginning of the answer, or why there was none. */
  status: number | null;
  answer: string | null;
  failure: string | null;
}

/** When usage keys expire, as far as events of the contract have said; the contract decides what is true. */
export interface KeyExpiriesTable {
  key_id: string;
  /** Unix seconds. */
  expires_at: Int8;
  account_id: string;
  noticed: Generated<boolean>;
  /** When the contract is asked about it, once the expiry is near. */
  ask_at: Timestamp;
  /** How often the contract has said otherwise since an event said it. */
  contradictions: Generated<number>;
}

export interface WebhookTables {
  webhooks: WebhooksTable;
  webhook_events: WebhookEventsTable;
  webhook_deliveries: WebhookDeliveriesTable;
  key_expiries: KeyExpiriesTable;
}
