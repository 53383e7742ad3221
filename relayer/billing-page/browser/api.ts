/** The billing routes as this page uses them. The key lives in the instance and nowhere else. */
const PREFIX = "/core/v1/billing";
const TIMEOUT_MS = 30_000;

/** A failure in words for the person in front of the page. */
export class Failure extends Error {
  constructor(
    message: string,
    /** The service's error code; `unreachable` when there was no answer. */
    readonly code: string,
  ) {
    super(message);
  }
}

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
  constructor(private readonly key: string) {}

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
    const answer = await reach(PREFIX + path, { method, ...sent, headers: { ...sent.headers, ...headers, Authorization: `Bearer ${this.key}` } });
    const value: unknown = await answer.json().catch(() => undefined);
    if (answer.ok) return value as T;
    throw failureOf(answer.status, value);
  }
}

/** One request with a deadline; no answer is a failure in words, too. */
export async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    throw new Failure("There was no answer. Nothing is paid twice: press again to carry on where it stopped.", "unreachable");
  }
}

function failureOf(status: number, problem: unknown): Failure {
  const { code, detail } = (problem ?? {}) as { code?: string; detail?: string };
  return new Failure(detail ?? `The service answered ${status}.`, code ?? "unknown");
}
