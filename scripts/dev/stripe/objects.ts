/** The double's objects, with the fields of Stripe's objects that a payment client reads. */
import { randomBytes } from "node:crypto";
import type { CardOutcome } from "./cards";

export type Metadata = Record<string, string>;

interface StripeObject {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly livemode: false;
}

export interface Customer extends StripeObject {
  readonly object: "customer";
  readonly email: string | null;
  readonly metadata: Metadata;
}

export type IntentStatus =
  "requires_payment_method" | "requires_confirmation" | "requires_action" | "succeeded" | "canceled";

export interface PaymentIntent extends StripeObject {
  readonly object: "payment_intent";
  readonly amount: number;
  amount_received: number;
  readonly currency: string;
  readonly customer: string | null;
  readonly client_secret: string;
  readonly allowed_payment_method_types: string[] | null;
  readonly payment_method_types: string[];
  readonly metadata: Metadata;
  status: IntentStatus;
  payment_method: string | null;
  latest_charge: string | null;
  next_action: unknown;
  last_payment_error: unknown;
}

export interface PaymentMethod extends StripeObject {
  readonly object: "payment_method";
  readonly type: "card";
  readonly card: { readonly last4: string };
}

export interface Charge extends StripeObject {
  readonly object: "charge";
  readonly amount: number;
  readonly amount_captured: number;
  readonly captured: true;
  amount_refunded: number;
  refunded: boolean;
  disputed: boolean;
  readonly currency: string;
  readonly customer: string | null;
  readonly payment_intent: string;
  readonly metadata: Metadata;
  readonly paid: true;
  readonly receipt_url: string;
  readonly status: "succeeded";
}

export interface Refund extends StripeObject {
  readonly object: "refund";
  readonly amount: number;
  readonly charge: string;
  readonly currency: string;
  readonly payment_intent: string;
  status: "succeeded" | "failed";
}

export type DisputeStatus =
  "warning_needs_response" | "warning_closed" | "needs_response" | "under_review" | "won" | "lost";

export interface Dispute extends StripeObject {
  readonly object: "dispute";
  readonly amount: number;
  readonly charge: string;
  readonly currency: string;
  readonly payment_intent: string;
  readonly reason: "fraudulent";
  status: DisputeStatus;
}

export interface Event extends StripeObject {
  readonly object: "event";
  readonly api_version: string;
  readonly type: string;
  readonly pending_webhooks: number;
  readonly request: { readonly id: string | null; readonly idempotency_key: string | null };
  readonly data: { readonly object: unknown };
}

/** The double's state; newest last. */
export class Objects {
  readonly customers = new Map<string, Customer>();
  readonly intents = new Map<string, PaymentIntent>();
  /** Planned outcomes of payment methods made from card details, and of intents that wait for authentication. */
  readonly paymentMethods = new Map<string, { readonly object: PaymentMethod; readonly outcome: CardOutcome }>();
  readonly authentications = new Map<string, CardOutcome>();
  readonly charges = new Map<string, Charge>();
  /** Charges whose refunds will fail. */
  readonly failingRefunds = new Set<string>();
  readonly disputes = new Map<string, Dispute>();
  readonly events = new Map<string, Event>();
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

export function randomText(length: number): string {
  return Array.from(randomBytes(length), (byte) => LETTERS[byte % LETTERS.length]).join("");
}

export const newId = (prefix: string): string => `${prefix}_${randomText(24)}`;

export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** Stripe's lists: newest first, filtered by `created`, paged by `starting_after`. */
export interface ListQuery {
  readonly limit?: number | undefined;
  readonly starting_after?: string | undefined;
  readonly created?:
    | {
        readonly gte?: number | undefined;
        readonly gt?: number | undefined;
        readonly lte?: number | undefined;
        readonly lt?: number | undefined;
      }
    | undefined;
}

export function listOf<T extends { readonly id: string; readonly created: number }>(
  all: Iterable<T>,
  query: ListQuery,
  url: string,
): unknown {
  const { limit = 10, starting_after: after, created = {} } = query;
  const matching = [...all]
    .reverse()
    .filter(
      ({ created: at }) =>
        at >= (created.gte ?? 0) &&
        at > (created.gt ?? -1) &&
        at <= (created.lte ?? Infinity) &&
        at < (created.lt ?? Infinity),
    );
  const start = after === undefined ? 0 : matching.findIndex(({ id }) => id === after) + 1;
  const data = matching.slice(start, start + limit);
  return { object: "list", url, has_more: start + data.length < matching.length, data };
}
