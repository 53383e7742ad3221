/** Credits: a ledger that stays exact under concurrency and crashes. */
import type { Prices } from "../../protocol/limits";
import type { Db } from "../store/database";
import { PeriodicTask } from "../periodicTask";
import { CreditAccounts } from "./creditAccounts";
import { CreditExports } from "./exports";
import type { PaymentDiscrepancy, ProcessorCheck } from "./payments/check";
import { Payments, type PaymentKeys } from "./payments/index";
import { paymentsUnavailable } from "./payments/processor";
import { Reservations } from "./reservations";
import { recordEnds, RunRecords } from "./runRecords";
import type { SignupCredit } from "./signup";

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
  readonly recordMs?: number | undefined;
  readonly reconcileMs?: number | undefined;
  /** Receives each payment on which the processor and the ledger differ. */
  readonly onProcessorWrong?: ((found: PaymentDiscrepancy) => void) | undefined;
  readonly checkMs?: number | undefined;
}

const SWEEP_MS = 5_000;
const CHECK_MS = 30_000;
const RECORD_MS = 1_000;
const RECONCILE_MS = 10 * 60_000;

export class Credits {
  readonly accounts: CreditAccounts;
  readonly reservations: Reservations;
  readonly runs: RunRecords;
  readonly exports: CreditExports;
  /** The running comparison with the payment processor; undefined where no payment keys are configured. */
  readonly processorCheck: ProcessorCheck | undefined;
  readonly #payments: Payments | undefined;
  readonly #background: readonly PeriodicTask[];

  constructor(options: CreditsOptions) {
    const { db, payments, deployment, onError } = options;
    this.accounts = new CreditAccounts(db, options.signup);
    this.reservations = new Reservations({ ...options, accounts: this.accounts });
    this.runs = new RunRecords(db);
    this.exports = new CreditExports(db);
    this.#payments = payments && new Payments(db, payments, deployment);
    this.processorCheck = this.#payments?.check(options.onProcessorWrong ?? (() => undefined));
    this.#background = [
      new PeriodicTask(() => this.reservations.sweep(), options.sweepMs ?? SWEEP_MS, onError),
      new PeriodicTask(() => recordEnds(db), options.recordMs ?? RECORD_MS, onError),
      ...(this.#payments === undefined ? [] : this.#withProcessor(this.#payments, options)),
    ];
  }

  #withProcessor(payments: Payments, { reconcileMs, checkMs, onError }: CreditsOptions): readonly PeriodicTask[] {
    return [
      new PeriodicTask(() => payments.reconcile(), reconcileMs ?? RECONCILE_MS, onError),
      new PeriodicTask(async () => this.processorCheck?.turn(), checkMs ?? CHECK_MS, onError),
    ];
  }

  /** Error: `payments_unavailable` when no payment keys are configured. */
  get payments(): Payments {
    if (this.#payments === undefined) throw paymentsUnavailable("No payment processor is configured for this service.");
    return this.#payments;
  }

  /** Starts the background work: sweeping reservations, storing records, reconciliation with the payment processor. */
  start(): void {
    for (const work of this.#background) work.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#background.map((work) => work.stop()));
    await this.reservations.stop();
  }
}
