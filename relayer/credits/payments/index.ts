/** Payments through the processor: intents, its events, and comparison of its books with the ledger. */
import type { Db } from "../../store/database";
import type { WebhookOutcome } from "../types";
import { ProcessorCheck, type PaymentDiscrepancy } from "./check";
import { applyEvent, verifiedEvent } from "./events";
import { Intents } from "./intents";
import { openProcessor, type PaymentKeys } from "./processor";
import { reconcile } from "./reconcile";

export type { PaymentKeys } from "./processor";

export class Payments {
  readonly intents: Intents;
  readonly #stripe;
  readonly #db: Db;
  readonly #keys: PaymentKeys;
  readonly #deployment: string;

  constructor(db: Db, keys: PaymentKeys, deployment: string) {
    this.#db = db;
    this.#keys = keys;
    this.#deployment = deployment;
    this.#stripe = openProcessor(keys);
    this.intents = new Intents(db, this.#stripe, deployment);
  }

  /** The processor's key for browsers. */
  get publishableKey(): string {
    return this.#keys.publishableKey;
  }

  /**
   * Verifies and applies one event of the processor; duplicates and any order are safe. Error:
   * `invalid_webhook_signature`.
   */
  async handleWebhook(rawBody: Buffer, signature: string | undefined): Promise<WebhookOutcome> {
    const event = verifiedEvent(this.#stripe, rawBody, signature, this.#keys.webhookSecret.reveal());
    return { handled: await applyEvent(this.#db, this.#deployment, event) };
  }

  /** The running comparison of the books with the processor. */
  check(onWrong: (found: PaymentDiscrepancy) => void, graceSeconds?: number): ProcessorCheck {
    const db = this.#db;
    const deployment = this.#deployment;
    return new ProcessorCheck({
      db,
      stripe: this.#stripe,
      deployment,
      reconcile: () => this.reconcile(),
      onWrong,
      graceSeconds,
    });
  }

  reconcile(): Promise<number> {
    return reconcile({ db: this.#db, stripe: this.#stripe, deployment: this.#deployment });
  }
}
