/** Everything about the payment processor, behind the few methods `Credits` needs. */
import type { AccountId } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { Confirmation, Intent, IntentRequest, WebhookOutcome } from "../types";
import { ProcessorCheck, type PaymentDiscrepancy } from "./check";
import { applyEvent, verifiedEvent } from "./events";
import { Intents } from "./intents";
import { openProcessor, type PaymentKeys } from "./processor";
import { reconcile } from "./reconcile";

export type { PaymentKeys } from "./processor";

export class Payments {
  readonly #stripe;
  readonly #intents;
  readonly #db: Db;
  readonly #keys: PaymentKeys;
  readonly #deployment: string;

  constructor(db: Db, keys: PaymentKeys, deployment: string) {
    this.#db = db;
    this.#keys = keys;
    this.#deployment = deployment;
    this.#stripe = openProcessor(keys);
    this.#intents = new Intents(db, this.#stripe, deployment);
  }

  get publishableKey(): string {
    return this.#keys.publishableKey;
  }

  createIntent(request: IntentRequest): Promise<Intent> {
    return this.#intents.create(request);
  }

  confirmIntent(accountId: AccountId, intentId: string): Promise<Confirmation> {
    return this.#intents.confirm(accountId, intentId);
  }

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
