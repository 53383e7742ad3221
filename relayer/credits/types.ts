/**
 * The interface of credits for the rest of the relayer. All amounts are whole US cents; positive = credit to the
 * account.
 */
import type { RunOutcome } from "../../protocol/http";
import type { AccountId, ActionHash, Address, Cid, Hash32, KeyId } from "../../protocol/ids";
import type { Trx } from "../store/database";
import type { ProcessorFigures } from "./payments/check";
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
  /** Names the run, so that it can be looked up (`earlierRun`) and is never reserved twice. */
  readonly runId?: string | undefined;
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
}

/** A recorded run as shown to its account. */
export interface RunView extends Pick<
  RunRecord,
  "keyId" | "requestId" | "cid" | "durationMs" | "outcome" | "pkpsUsed" | "startedAt"
> {
  readonly costCents: number;
}

export interface RunFilter {
  readonly keyId?: Hash32 | undefined;
  readonly actionHash?: ActionHash | undefined;
  readonly outcome?: RunOutcome | undefined;
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

export interface Credits {
  /** The account's balance; 0 for an account not seen before (plus the signup credit, where every account gets it). */
  balance(accountId: AccountId): Promise<Balance>;

  /** What each key has spent over its life, settled operations only. Unknown keys count 0. */
  spentCents(keyIds: readonly KeyId[]): Promise<ReadonlyMap<KeyId, number>>;

  /** Ledger entries of the account, newest first. */
  history(accountId: AccountId, page: Page): Promise<History>;

  /**
   * Holds a write's price for its submission; false when it holds nothing, and the write is free. Errors:
   * `insufficient_credit` {required_cents, balance_cents}, `key_cap_spent` {required_cents, cap_cents, spent_cents}.
   * Released automatically if the submission is never stored (`bindWrites`) and this instance dies.
   */
  reserveWrite(reservation: WriteReservation): Promise<boolean>;

  /**
   * Call in the transaction that stores the submissions: from then on only their outcomes settle or release the
   * reservations.
   * Throws `database_unavailable` (retryable, nothing sent) when a reservation was released meanwhile. Submissions
   * without a reservation are ignored.
   */
  bindWrites(submissionIds: readonly string[], trx: Trx): Promise<void>;

  /**
   * The write was mined (also when it reverted: its gas was paid). Call in the transaction that stores the outcome;
   * idempotent. Returns the cents charged.
   */
  settleWrite(submissionId: string, trx: Trx): Promise<number>;

  /** The write failed before it was mined, or expired. Call in the transaction that stores the outcome; idempotent. */
  releaseWrite(submissionId: string, trx: Trx): Promise<void>;

  /** Settles or releases all writes of a batch. */
  endWrites(ends: readonly WriteEnd[], trx: Trx): Promise<void>;

  /**
   * For a write that failed between `reserveWrite` and its submission. If the submission was stored after all, the
   * reservation stays. Never rejects.
   */
  abandonWrite(submissionId: string): Promise<void>;

  /**
   * Holds min(limit × price, free balance, rest of the key's cap), at least one second's price.
   * Errors: `insufficient_credit` {required_cents, balance_cents}, `key_cap_spent` {required_cents, cap_cents,
   * spent_cents}, `idempotency_in_progress` when a run with this id was reserved before.
   */
  reserveRun(request: RunRequest): Promise<RunReservation>;

  /**
   * Charges min(reserved, started seconds × price) and releases the rest; the record is stored in the same transaction.
   * Idempotent: a second call returns the first one's cost and records nothing. Returns the cents charged.
   */
  settleRun(reservationId: string, durationMs: number, record?: RunRecord): Promise<number>;

  /** The guest was never started (then there is no record), or the service was at fault: nothing is charged. */
  releaseRun(reservationId: string, record?: RunRecord): Promise<void>;

  /** Whether a run with this id was ever reserved, and its record if there is one. */
  earlierRun(runId: string): Promise<{ readonly run?: RunView } | undefined>;

  /** Recorded runs of the account, newest first, for as many days as records are kept. */
  runs(
    accountId: AccountId,
    filter: RunFilter,
    page: Page,
  ): Promise<{ readonly runs: readonly RunView[]; readonly total: number }>;

  /** Sums of the account's runs by day and key, newest day first. */
  usage(
    accountId: AccountId,
    span: DaySpan,
    page: Page,
  ): Promise<{ readonly days: readonly DayUsage[]; readonly total: number }>;

  /**
   * Grants once per account id, under the global daily cap; returns the cents granted by this call (0 when already
   * granted or the cap is reached).
   */
  grantSignupCredit(accountId: AccountId): Promise<number>;

  /** Stored for the payment processor and passed on with the first intent. */
  rememberEmail(accountId: AccountId, email: string): Promise<void>;

  /** The processor's key for browsers. Error: `payments_unavailable` when no payment keys are configured. */
  publishableKey(): string;

  /**
   * Errors: `amount_out_of_range`, `payments_unavailable`, `idempotency_conflict` (attempt key used with another
   * amount).
   */
  createIntent(request: IntentRequest): Promise<Intent>;

  /**
   * Credits a succeeded intent of this account, once. Amount and currency are read from the intent. Errors:
   * `payment_intent_not_found` (unknown, or another account's), `payment_not_succeeded` {status},
   * `payments_unavailable`.
   */
  confirmIntent(accountId: AccountId, paymentIntentId: string): Promise<Confirmation>;

  /**
   * Verifies and applies one Stripe event; duplicates and any order are safe. Errors: `invalid_webhook_signature`,
   * `payments_unavailable`.
   */
  handleWebhook(rawBody: Buffer, signatureHeader: string | undefined): Promise<WebhookOutcome>;

  /**
   * Figures of the last complete comparison with the payment processor; undefined where no payment keys are configured.
   */
  processorFigures(): ProcessorFigures | undefined;

  /** Starts the background work: sweeping reservations, reconciliation with the payment processor. */
  start(): Promise<void>;
  stop(): Promise<void>;
}
