/**
 * What credits exchange with the rest of the relayer. All amounts are whole US cents; positive = credit to the
 * account.
 */
import type { RunOutcome } from "../../protocol/http";
import type { AccountId, ActionHash, Address, Cid, Hash32, KeyId } from "../../protocol/ids";
import type { EntryKind } from "../store/tables/credits";

/**
 * Who pays: the account, and the usage key acting for it with the cap its owner set (`balance` on chain; 0 or absent =
 * no cap).
 */
export interface Spender {
  readonly accountId: AccountId;
  /** Absent for the account key and other owner credentials: they have no cap. */
  readonly keyId?: KeyId | undefined;
  readonly capCents?: number | undefined;
}

export interface Balance {
  /**
   * Positive = credit; below zero only through refunds, disputes, corrections and late settlements. Reservations are
   * not subtracted.
   */
  readonly balanceCents: number;
  /** The part of it held for operations in progress. */
  readonly reservedCents: number;
}

/** How a write ended: charged when it was executed, also when it reverted on its own. */
export interface WriteEnd {
  readonly submissionId: string;
  readonly charged: boolean;
  /** It was charged, and turned out not to be executed: its price is given back. */
  readonly isUndone?: boolean;
}

export interface WriteReservation extends Spender {
  /** The submission that holds the credit. */
  readonly submissionId: string;
  readonly cents: number;
  /** Charge if there is credit, proceed without charge if not (revoking a leaked key has to work at zero balance). */
  readonly evenWithoutCredit?: boolean | undefined;
}

export interface RunRequest extends Spender {
  /** The requested wall limit, in ms. */
  readonly limitMs: number;
  /** Names the run, so that it can be looked up (`RunRecords.find`) and is never reserved twice. */
  readonly runId?: string | undefined;
  /** The `Origin` of the request, where it says one. */
  readonly origin?: string | undefined;
}

/** What an owner may set for a usage key. Absent = no limit. */
export interface KeyLimits {
  /** In any 24 hours. */
  readonly centsPerDay?: number | undefined;
  /** In any 60 seconds. */
  readonly runsPerMinute?: number | undefined;
  /** Pages that may use the key, as far as browsers say the truth; empty = all. */
  readonly origins: readonly string[];
}

/** A key's limits, and what counts against them now. */
export interface LimitedKey extends KeyLimits {
  readonly keyId: KeyId;
  readonly centsUsed: number;
  readonly runsUsed: number;
}

export interface RunReservation {
  readonly reservationId: string;
  /** The wall limit that the reserved credit pays for: at most the requested one. */
  readonly limitMs: number;
}

/** What is stored of a run; never its parameters, logs or response. */
export interface RunRecord {
  readonly accountId: AccountId;
  /** The key that ran it; the account's own id for its owner. */
  readonly keyId: Hash32;
  readonly requestId: string;
  readonly cid: Cid;
  readonly actionHash: ActionHash;
  readonly durationMs: number;
  readonly outcome: RunOutcome;
  readonly pkpsUsed: readonly Address[];
  readonly startedAt: Date;
  /** Hex of the SHA-256 of the run's receipt. */
  readonly receiptSha256: string;
  /** The trigger that made the run. */
  readonly triggerId?: string | undefined;
  /** Of a failed run, bounded. */
  readonly errorMessage?: string | undefined;
}

/** A recorded run as shown to its account. */
export interface RunView extends Pick<
  RunRecord,
  | ("keyId" | "requestId" | "cid" | "durationMs" | "outcome" | "pkpsUsed" | "startedAt" | "receiptSha256")
  | ("triggerId" | "errorMessage")
> {
  readonly costCents: number;
}

export interface RunFilter {
  /** Unix seconds: runs started in this second or before. */
  readonly until?: number | undefined;
  readonly keyId?: Hash32 | undefined;
  readonly actionHash?: ActionHash | undefined;
  readonly outcome?: RunOutcome | undefined;
  /** Unix seconds: runs started in this second or later. */
  readonly from?: number | undefined;
}

/** Days as `YYYY-MM-DD` in UTC, both included. */
export interface DaySpan {
  readonly from: string;
  readonly to: string;
}

/** Sums of one day and key. */
export interface DayUsage {
  readonly day: string;
  readonly keyId: Hash32;
  readonly runs: number;
  readonly failed: number;
  /** Charged writes; those by the owner are under the account's id. */
  readonly changes: number;
  readonly changesCents: number;
  readonly costCents: number;
  readonly durationMs: number;
}

export interface Page {
  readonly number: number;
  readonly size: number;
}

export interface HistoryEntry {
  readonly id: number;
  readonly kind: EntryKind;
  readonly amountCents: number;
  /** Submission id, run id or payment intent id. */
  readonly reference: string;
  readonly keyId: KeyId | undefined;
  /** URL of the processor's receipt for the entry's payment. */
  readonly receiptUrl: string | undefined;
  readonly createdAt: Date;
}

export interface History {
  /** Newest first. */
  readonly entries: readonly HistoryEntry[];
  readonly total: number;
}

export interface IntentRequest {
  readonly accountId: AccountId;
  /** 500…99,999,999, else `amount_out_of_range`. */
  readonly amountCents: number;
  /**
   * The client's name for one attempt (`Idempotency-Key`): repeating it returns the same intent, also after a time-out
   * or reload.
   */
  readonly attemptKey?: string | undefined;
}

export interface Intent {
  readonly paymentIntentId: string;
  /** Lets a browser complete this one payment; never stored, never logged. */
  readonly clientSecret: string;
}

export interface Confirmation {
  readonly balanceCents: number;
  readonly alreadyCredited: boolean;
}

export interface WebhookOutcome {
  /** Whether the event concerned a payment of this deployment. */
  readonly handled: boolean;
}
