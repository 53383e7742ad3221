/** The billing routes as this page uses them. */
import type { Credentials } from "./credentials";
import { Failure, reach } from "./failures";

const PREFIX = "/core/v1/billing";

export interface Balance {
  readonly balance_display: string;
  readonly reserved_cents: number;
}

export interface Entry {
  readonly kind: string;
  readonly amount_cents: number;
  readonly reference: string;
  readonly created_at: string;
}

export interface PaymentIntent {
  readonly payment_intent_id: string;
  readonly client_secret: string;
}

export class BillingApi {
  constructor(private readonly credentials: Credentials) {}

  balance(): Promise<Balance> {
    return this.#ask("GET", "/balance");
  }

  async publishableKey(): Promise<string> {
    return (await this.#ask<{ publishable_key: string }>("GET", "/stripe_config")).publishable_key;
  }

  history(page: number, size: number): Promise<Entry[]> {
    return this.#ask("GET", `/history?page_number=${page}&page_size=${size}`);
  }

  createIntent(amountCents: number, attemptKey: string): Promise<PaymentIntent> {
    return this.#ask("POST", "/create_payment_intent", { amount_cents: amountCents }, { "Idempotency-Key": attemptKey });
  }

  async confirm(paymentIntentId: string): Promise<void> {
    await this.#ask("POST", "/confirm_payment", { payment_intent_id: paymentIntentId });
  }

  async #ask<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const answer = await reach(PREFIX + path, { method, ...sent, headers: { ...sent.headers, ...headers, ...(await this.credentials()) } });
    const value: unknown = await answer.json().catch(() => undefined);
    if (answer.ok) return value as T;
    throw failureOf(answer.status, value);
  }
}

function failureOf(status: number, problem: unknown): Failure {
  const { code, detail } = (problem ?? {}) as { code?: string; detail?: string };
  return new Failure(detail ?? `The service answered ${status}.`, code ?? "unknown");
}
