/**
 * The payment processor's client, with explicit time-outs and retries. Errors are mapped to this API's codes: anything
 * unreachable or uncertain is `payments_unavailable`. Nothing is credited or lost by that: the event arrives later, or
 * reconciliation finds it.
 */
import Stripe from "stripe";
import { KeywrightError } from "../../../protocol/errors";
import type { Secret } from "../../../protocol/secret";

export interface PaymentKeys {
  readonly secretKey: Secret;
  readonly publishableKey: string;
  readonly webhookSecret: Secret;
  /** Another server with the processor's HTTP API (the development double); absent = the processor itself. */
  readonly apiBase?: string | undefined;
}

const TIMEOUT_MS = 10_000;
const RETRIES = 2;

export function openProcessor(keys: PaymentKeys): Stripe {
  return new Stripe(keys.secretKey.reveal(), {
    timeout: TIMEOUT_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    ...addressOf(keys.apiBase),
  });
}

function addressOf(apiBase: string | undefined): { host?: string; port?: string; protocol?: "http" | "https" } {
  if (apiBase === undefined) return {};
  const url = new URL(apiBase);
  const protocol = url.protocol === "https:" ? "https" : "http";
  return { host: url.hostname, port: url.port || (protocol === "https" ? "443" : "80"), protocol };
}

/** Runs one call to the processor. `missing` is the error for a 404. */
export async function ask<T>(call: () => Promise<T>, missing?: KeywrightError): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw translated(error, missing);
  }
}

function translated(error: unknown, missing: KeywrightError | undefined): unknown {
  if (error instanceof KeywrightError) return error;
  if (
    missing !== undefined &&
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    error.code === "resource_missing"
  )
    return missing;
  if (error instanceof Stripe.errors.StripeIdempotencyError) {
    return new KeywrightError(
      "idempotency_conflict",
      "This attempt was begun with other values. Start a new attempt.",
      {},
      { cause: error },
    );
  }
  return paymentsUnavailable(
    "The payment processor did not answer. Nothing was charged or credited by this call; try again.",
    error,
  );
}

export function paymentsUnavailable(detail: string, cause?: unknown): KeywrightError {
  return new KeywrightError("payments_unavailable", detail, {}, { cause, retryAfterSeconds: 5 });
}
