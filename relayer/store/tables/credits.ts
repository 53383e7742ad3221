import type { Generated } from "kysely";
import type { Int8, Json, Timestamp } from "./types";

/**
 * An account's balance: a row changed in the same transaction as its ledger entries. Keyed by account id, so conversion
 * and transfer move nothing.
 */
export interface CreditAccountsTable {
  account_id: string;
  /**
   * Sum of the account's ledger entries; below zero only through refunds, disputes, corrections and late settlements.
   */
  balance_cents: Generated<Int8>;
  /** The part of it held by open reservations. */
  reserved_cents: Generated<Int8>;
  /** A settled run that leaves less looks for the account's levels of `credit.low`; kept by triggers of the store. */
  low_cents: Generated<Int8>;
  /** Number of ledger entries: lists never count rows. */
  entries: Generated<Int8>;
  /** Kept for the payment processor only; never on chain, never in logs. */
  email: string | null;
  customer_id: string | null;
}

/** What a usage key has spent over its life; survives the key's removal. */
export interface KeySpendingTable {
  key_id: string;
  spent_cents: Generated<Int8>;
  reserved_cents: Generated<Int8>;
}

/**
 * Limits that an owner has set for a usage key, and what counts against them. The row stays when they are lifted: what
 * is held at that time still leaves its counts.
 */
export interface KeyLimitsTable {
  account_id: string;
  key_id: string;
  /** Null = no limit. */
  cents_per_day: Int8 | null;
  runs_per_minute: Int8 | null;
  /** Empty = any. */
  origins: Json<readonly string[]>;
  /** Held and charged cents by hours since 1970, runs by ticks; see `keyLimits.ts`. */
  cents_by_hour: Json<Readonly<Record<string, number>>>;
  runs_by_tick: Json<Readonly<Record<string, number>>>;
}

export type EntryKind = "signup_credit" | "top_up" | "refund" | "dispute" | "reversal" | "correction" | "write" | "run";

/** The service's side of every entry. */
export type ContraAccount = "promotions" | "payments" | "revenue" | "corrections";

/**
 * The ledger, append-only (a trigger refuses UPDATE, DELETE and TRUNCATE). One row is both legs of a posting:
 * `amount_cents` to the account and the same amount out of the service's book, so that half a posting cannot exist.
 */
export interface LedgerEntriesTable {
  id: Generated<Int8>;
  account_id: string;
  contra: ContraAccount;
  /** Never zero; positive = credit to the account. */
  amount_cents: Int8;
  kind: EntryKind;
  /** What the entry is for: submission id, run id, payment intent id. */
  reference: string;
  /** Unique: the same operation never posts twice. */
  posting_key: string;
  key_id: string | null;
  created_at: Timestamp;
}

export type ReservationState = "held" | "settled" | "released";

/** Credit held for one operation: a write (id = submission id) or a run. */
export interface CreditReservationsTable {
  id: string;
  kind: "write" | "run";
  account_id: string;
  key_id: string | null;
  reserved_cents: Int8;
  /** What it cost; null while held. */
  cost_cents: Int8 | null;
  state: Generated<ReservationState>;
  /** The instance responsible for it, until a write's submission is stored. */
  instance_id: string;
  /** True once the submission is stored: from then on only its outcome closes the reservation, on any instance. */
  bound: Generated<boolean>;
  /** Released because its instance was presumed dead. If that was alive, it still settles it. */
  given_back: Generated<boolean>;
  /** The hour under which its key's limits count it; null where they do not. */
  counted_hour: Int8 | null;
  created_at: Timestamp;
  closed_at: Timestamp | null;
}

/** One row per payment intent of this deployment that an event or a confirmation mentioned, in any order. */
export interface PaymentsTable {
  intent_id: string;
  /** Known from the intent; null while only a refund or a receipt has been reported. */
  account_id: string | null;
  /** Zero until the intent has succeeded and was credited, exactly once. */
  credited_cents: Generated<Int8>;
  /** The largest cumulative sum the processor has reported. */
  refunded_cents: Generated<Int8>;
  /** Total debited so far for refunds and open disputes. */
  debited_cents: Generated<Int8>;
  /** Number of changes of `debited_cents`; numbers the ledger entries. */
  adjustments: Generated<Int8>;
  /** URL of the processor's receipt; null until reported. */
  receipt_url: string | null;
  created_at: Timestamp;
}

/** Each refund and dispute of an intent, so that their events may arrive in any order. */
export interface PaymentClaimsTable {
  claim_id: string;
  kind: "refund" | "dispute";
  intent_id: string;
  amount_cents: Int8;
  /** The refund failed, or the dispute's money was returned or never taken; the newest report counts. */
  withdrawn: boolean;
  /** Unix seconds of the newest event about it. */
  told_at: Generated<Int8>;
}

/** Intents requested under a client's attempt key: a repeated attempt gets the first one's intent. */
export interface PaymentAttemptsTable {
  account_id: string;
  attempt_key: string;
  amount_cents: Int8;
  intent_id: string | null;
  created_at: Timestamp;
}

/** Single values of this area, such as the reconciliation watermark. */
export interface CreditSettingsTable {
  name: string;
  value: Json<unknown>;
}

export interface CreditTables {
  credit_accounts: CreditAccountsTable;
  key_spending: KeySpendingTable;
  key_limits: KeyLimitsTable;
  ledger_entries: LedgerEntriesTable;
  credit_reservations: CreditReservationsTable;
  payments: PaymentsTable;
  payment_claims: PaymentClaimsTable;
  payment_attempts: PaymentAttemptsTable;
  credit_settings: CreditSettingsTable;
}
