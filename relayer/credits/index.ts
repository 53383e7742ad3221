/** Credits: a ledger that stays exact under concurrency and crashes. */
import type { AccountId, KeyId } from "../../protocol/ids";
import type { Prices } from "../../protocol/limits";
import type { Db, Trx } from "../store/database";
import { ensureAccount, ensureKey, readBalance, readSpent, rememberEmail, SeenIds } from "./accounts";
import { Repeating } from "../background";
import { readHistory } from "./ledger";
import type { PaymentDiscrepancy, ProcessorCheck, ProcessorFigures } from "./payments/check";
import { Payments, type PaymentKeys } from "./payments/index";
import { paymentsUnavailable } from "./payments/processor";
import { Reservations } from "./reservations";
import { readRun, readRuns, readUsage, recordEnds } from "./runRecords";
import { grantSignupCredit, type SignupCredit } from "./signup";
import type {
  Balance,
  Confirmation,
  Credits,
  DaySpan,
  History,
  Intent,
  IntentRequest,
  Page,
  RunFilter,
  RunRecord,
  RunRequest,
  RunReservation,
  Spender,
  WebhookOutcome,
  WriteEnd,
  WriteReservation,
} from "./types";

export type { PaymentKeys } from "./payments/index";
export type { SignupCredit } from "./signup";
export type * from "./types";

export interface CreditsOptions {
  readonly db: Db;
  /** Identifies this process among its peers (`Instance.id`). */
  readonly instanceId: string;
  readonly prices: Prices;
  readonly signup: SignupCredit;
  /** Absent: no credit can be bought; metered operations still require credit. */
  readonly payments?: PaymentKeys | undefined;
  /** Identifies this deployment (chain and contract) in the metadata of its payments. */
  readonly deployment: string;
  /** Receives errors of background work. */
  readonly onError: (error: unknown) => void;
  readonly sweepMs?: number | undefined;
  readonly reconcileMs?: number | undefined;
  /** Receives each payment on which the processor and the ledger differ. */
  readonly onProcessorWrong?: ((found: PaymentDiscrepancy) => void) | undefined;
  readonly checkMs?: number | undefined;
}

const SWEEP_MS = 5_000;
const CHECK_MS = 30_000;
const RECORD_MS = 1_000;
const RECONCILE_MS = 10 * 60_000;

export function createCredits(options: CreditsOptions): Credits {
  return new LedgerCredits(options);
}

class LedgerCredits implements Credits {
  readonly #db: Db;
  readonly #reservations: Reservations;
  readonly #payments: Payments | undefined;
  readonly #accounts = new SeenIds();
  readonly #keys = new SeenIds();
  readonly #background: readonly Repeating[];
  #check: ProcessorCheck | undefined;
  readonly #options: CreditsOptions;

  constructor(options: CreditsOptions) {
    this.#options = options;
    const { db, payments, deployment, onError } = options;
    this.#db = db;
    this.#reservations = new Reservations(options);
    this.#payments = payments && new Payments(db, payments, deployment);
    this.#background = [
      new Repeating(() => this.#reservations.sweep(), options.sweepMs ?? SWEEP_MS, onError),
      new Repeating(() => recordEnds(db), RECORD_MS, onError),
      ...(this.#payments === undefined ? [] : [this.#reconciling(this.#payments), this.#checking(this.#payments)]),
    ];
  }

  #reconciling(payments: Payments): Repeating {
    return new Repeating(() => payments.reconcile(), this.#options.reconcileMs ?? RECONCILE_MS, this.#options.onError);
  }

  #checking(payments: Payments): Repeating {
    const check = (this.#check = payments.check(this.#options.onProcessorWrong ?? (() => undefined)));
    return new Repeating(() => check.turn(), this.#options.checkMs ?? CHECK_MS, this.#options.onError);
  }

  processorFigures(): ProcessorFigures | undefined {
    return this.#check?.figures;
  }

  async balance(accountId: AccountId): Promise<Balance> {
    await this.#ensureKnown(accountId);
    return readBalance(this.#db, accountId);
  }

  spentCents(keyIds: readonly KeyId[]): Promise<ReadonlyMap<KeyId, number>> {
    return readSpent(this.#db, keyIds);
  }

  history(accountId: AccountId, page: Page): Promise<History> {
    return readHistory(this.#db, accountId, page);
  }

  async reserveWrite(reservation: WriteReservation): Promise<boolean> {
    await this.#ensureSpender(reservation);
    return this.#reservations.reserveWrite(reservation);
  }

  bindWrites(submissionIds: readonly string[], trx: Trx): Promise<void> {
    return this.#reservations.bindWrites(submissionIds, trx);
  }

  endWrites(ends: readonly WriteEnd[], trx: Trx): Promise<void> {
    return this.#reservations.endWrites(ends, trx);
  }

  settleWrite(submissionId: string, trx: Trx): Promise<number> {
    return this.#reservations.settleWrite(submissionId, trx);
  }

  releaseWrite(submissionId: string, trx: Trx): Promise<void> {
    return this.#reservations.releaseWrite(submissionId, trx);
  }

  abandonWrite(submissionId: string): Promise<void> {
    return this.#reservations.abandonWrite(submissionId);
  }

  async reserveRun(request: RunRequest): Promise<RunReservation> {
    await this.#ensureSpender(request);
    return this.#reservations.reserveRun(request);
  }

  settleRun(reservationId: string, durationMs: number, record?: RunRecord): Promise<number> {
    return this.#reservations.settleRun(reservationId, durationMs, record);
  }

  releaseRun(reservationId: string, record?: RunRecord): Promise<void> {
    return this.#reservations.releaseRun(reservationId, record);
  }

  earlierRun(runId: string): ReturnType<Credits["earlierRun"]> {
    return readRun(this.#db, runId);
  }

  runs(accountId: AccountId, filter: RunFilter, page: Page): ReturnType<Credits["runs"]> {
    return readRuns(this.#db, accountId, filter, page);
  }

  usage(accountId: AccountId, span: DaySpan, page: Page): ReturnType<Credits["usage"]> {
    return readUsage(this.#db, accountId, span, page);
  }

  grantSignupCredit(accountId: AccountId): Promise<number> {
    return grantSignupCredit(this.#db, this.#options.signup, accountId);
  }

  rememberEmail(accountId: AccountId, email: string): Promise<void> {
    return rememberEmail(this.#db, accountId, email);
  }

  publishableKey(): string {
    return this.#processor().publishableKey;
  }

  async createIntent(request: IntentRequest): Promise<Intent> {
    return this.#processor().createIntent(request);
  }

  async confirmIntent(accountId: AccountId, paymentIntentId: string): Promise<Confirmation> {
    return this.#processor().confirmIntent(accountId, paymentIntentId);
  }

  async handleWebhook(rawBody: Buffer, signatureHeader: string | undefined): Promise<WebhookOutcome> {
    return this.#processor().handleWebhook(rawBody, signatureHeader);
  }

  #processor(): Payments {
    if (this.#payments === undefined) throw paymentsUnavailable("No payment processor is configured for this service.");
    return this.#payments;
  }

  /**
   * On first sight of an account in this process: inserts its row and, where every account gets one, grants its signup
   * credit.
   */
  async #ensureKnown(accountId: AccountId): Promise<void> {
    const first = this.#options.signup.everyAccount
      ? () => this.grantSignupCredit(accountId)
      : () => ensureAccount(this.#db, accountId);
    await this.#accounts.once(accountId, first);
  }

  async #ensureSpender({ accountId, keyId }: Spender): Promise<void> {
    await this.#ensureKnown(accountId);
    if (keyId !== undefined) await this.#keys.once(keyId, () => ensureKey(this.#db, keyId));
  }

  async start(): Promise<void> {
    for (const work of this.#background) work.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#background.map((work) => work.stop()));
    await this.#reservations.stop();
  }
}
