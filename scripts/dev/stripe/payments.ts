/**
 * Operations on payment intents: create, confirm, authenticate, cancel, refund, dispute. Each change emits Stripe's
 * events.
 */
import { outcomeOfPaymentMethod, type CardOutcome } from "./cards";
import { invalidRequest, noSuch, StripeHttpError } from "./errors";
import {
  newId,
  nowSeconds,
  randomText,
  type Charge,
  type Dispute,
  type Metadata,
  type Objects,
  type PaymentIntent,
  type Refund,
} from "./objects";

export type Emit = (type: string, object: unknown) => void;

const AMOUNT_MIN = 50;
const AMOUNT_MAX = 99_999_999;

export interface NewIntent {
  readonly amount: number;
  readonly currency: string;
  readonly customer?: string | undefined;
  readonly allowed_payment_method_types?: string[] | undefined;
  readonly metadata: Metadata;
}

export class PaymentDesk {
  readonly #objects: Objects;
  readonly #emit: Emit;
  readonly #baseUrl: () => string;

  constructor(objects: Objects, emit: Emit, baseUrl: () => string) {
    this.#objects = objects;
    this.#emit = emit;
    this.#baseUrl = baseUrl;
  }

  create(wanted: NewIntent): PaymentIntent {
    if (wanted.amount < AMOUNT_MIN)
      throw invalidRequest("Amount must be at least $0.50 usd", { code: "amount_too_small", param: "amount" });
    if (wanted.amount > AMOUNT_MAX)
      throw invalidRequest("Amount must be no more than $999,999.99", { code: "amount_too_large", param: "amount" });
    if (wanted.customer !== undefined && !this.#objects.customers.has(wanted.customer))
      throw noSuchCustomer(wanted.customer);
    const id = newId("pi");
    const intent: PaymentIntent = {
      id,
      object: "payment_intent",
      created: nowSeconds(),
      livemode: false,
      amount: wanted.amount,
      amount_received: 0,
      currency: wanted.currency.toLowerCase(),
      customer: wanted.customer ?? null,
      client_secret: `${id}_secret_${randomText(25)}`,
      allowed_payment_method_types: wanted.allowed_payment_method_types ?? null,
      payment_method_types: wanted.allowed_payment_method_types ?? ["card"],
      metadata: wanted.metadata,
      status: "requires_payment_method",
      payment_method: null,
      latest_charge: null,
      next_action: null,
      last_payment_error: null,
    };
    this.#objects.intents.set(id, intent);
    this.#emit("payment_intent.created", intent);
    return intent;
  }

  find(id: string): PaymentIntent {
    const intent = this.#objects.intents.get(id);
    if (intent === undefined) throw noSuch("payment_intent", id, "intent");
    return intent;
  }

  confirm(intent: PaymentIntent, paymentMethod: string | undefined): PaymentIntent {
    if (intent.status === "succeeded" || intent.status === "canceled") throw unexpectedState(intent, "confirm");
    const method = paymentMethod ?? intent.payment_method ?? undefined;
    if (method === undefined) {
      throw invalidRequest("You cannot confirm this PaymentIntent because it's missing a payment method.", {
        code: "payment_intent_unexpected_state",
      });
    }
    intent.payment_method = method;
    return this.#pay(intent, this.#outcomeOf(method));
  }

  #outcomeOf(paymentMethod: string): CardOutcome {
    const outcome = this.#objects.paymentMethods.get(paymentMethod)?.outcome ?? outcomeOfPaymentMethod(paymentMethod);
    if (outcome === undefined)
      throw invalidRequest(`No such PaymentMethod: '${paymentMethod}'`, {
        code: "resource_missing",
        param: "payment_method",
      });
    return outcome;
  }

  #pay(intent: PaymentIntent, outcome: CardOutcome): PaymentIntent {
    intent.last_payment_error = null;
    if (outcome.kind === "declined") throw this.#decline(intent, outcome);
    if (outcome.kind === "authenticates") return this.#askForAuthentication(intent, outcome.then);
    return this.#succeed(intent, outcome.then);
  }

  #succeed(intent: PaymentIntent, then: Extract<CardOutcome, { kind: "succeeds" }>["then"]): PaymentIntent {
    const charge: Charge = {
      id: newId("ch"),
      object: "charge",
      created: nowSeconds(),
      livemode: false,
      amount: intent.amount,
      amount_captured: intent.amount,
      captured: true,
      amount_refunded: 0,
      refunded: false,
      disputed: false,
      currency: intent.currency,
      customer: intent.customer,
      payment_intent: intent.id,
      metadata: { ...intent.metadata },
      paid: true,
      receipt_url: `https://pay.stripe.com/receipts/payment/${randomText(40)}`,
      status: "succeeded",
    };
    this.#objects.charges.set(charge.id, charge);
    Object.assign(intent, {
      status: "succeeded",
      amount_received: intent.amount,
      latest_charge: charge.id,
      next_action: null,
    });
    this.#emit("charge.succeeded", charge);
    this.#emit("payment_intent.succeeded", intent);
    if (then === "failing refunds") this.#objects.failingRefunds.add(charge.id);
    else if (then !== undefined) this.dispute(charge, then === "inquiry" ? "warning_needs_response" : "needs_response");
    return intent;
  }

  #decline(intent: PaymentIntent, outcome: Extract<CardOutcome, { kind: "declined" }>): StripeHttpError {
    const error = {
      type: "card_error",
      code: outcome.code,
      decline_code: outcome.declineCode,
      message: outcome.message,
    } as const;
    Object.assign(intent, {
      status: "requires_payment_method",
      payment_method: null,
      next_action: null,
      last_payment_error: error,
    });
    this.#emit("payment_intent.payment_failed", intent);
    return new StripeHttpError(402, { ...error, payment_intent: structuredClone(intent) });
  }

  #askForAuthentication(intent: PaymentIntent, then: CardOutcome): PaymentIntent {
    this.#objects.authentications.set(intent.id, then);
    const url = `${this.#baseUrl()}/v1/payment_intents/${intent.id}/authenticate`;
    Object.assign(intent, {
      status: "requires_action",
      next_action: { type: "use_stripe_sdk", use_stripe_sdk: { type: "three_d_secure_redirect", stripe_js: url } },
    });
    this.#emit("payment_intent.requires_action", intent);
    return intent;
  }

  /** Simulates the payer's bank page; with Stripe itself this happens inside Stripe.js. */
  authenticate(intent: PaymentIntent, passed: boolean): PaymentIntent {
    const then = this.#objects.authentications.get(intent.id);
    if (intent.status !== "requires_action" || then === undefined) throw unexpectedState(intent, "authenticate");
    this.#objects.authentications.delete(intent.id);
    if (passed) return this.#pay(intent, then);
    const message =
      "We are unable to authenticate your payment method. Please choose a different payment method and try again.";
    throw this.#decline(intent, { kind: "declined", code: "payment_intent_authentication_failure", message });
  }

  cancel(intent: PaymentIntent): PaymentIntent {
    if (intent.status === "succeeded" || intent.status === "canceled") throw unexpectedState(intent, "cancel");
    intent.status = "canceled";
    this.#emit("payment_intent.canceled", intent);
    return intent;
  }

  refund(charge: Charge, amount: number | undefined): Refund {
    const left = charge.amount - charge.amount_refunded;
    const wanted = amount ?? left;
    if (left === 0)
      throw invalidRequest(`Charge ${charge.id} has already been refunded.`, { code: "charge_already_refunded" });
    if (wanted < 1 || wanted > left)
      throw invalidRequest(`Refund amount (${wanted}) is greater than unrefunded amount on charge (${left})`, {
        param: "amount",
      });
    const { currency, payment_intent: intent } = charge;
    const refund: Refund = {
      id: newId("re"),
      object: "refund",
      created: nowSeconds(),
      livemode: false,
      amount: wanted,
      charge: charge.id,
      currency,
      payment_intent: intent,
      status: "succeeded",
    };
    charge.amount_refunded += wanted;
    charge.refunded = charge.amount_refunded === charge.amount;
    this.#emit("refund.created", refund);
    this.#emit("charge.refunded", charge);
    if (this.#objects.failingRefunds.has(charge.id)) this.#sendBack(refund, charge);
    return refund;
  }

  /** A refund that succeeded at first and then failed: the money returns to the merchant. */
  #sendBack(refund: Refund, charge: Charge): void {
    refund.status = "failed";
    charge.amount_refunded -= refund.amount;
    charge.refunded = false;
    this.#emit("refund.updated", refund);
    this.#emit("refund.failed", refund);
  }

  dispute(charge: Charge, status: "needs_response" | "warning_needs_response"): Dispute {
    const { currency, payment_intent: intent } = charge;
    const amount = charge.amount - charge.amount_refunded;
    const dispute: Dispute = {
      id: newId("du"),
      object: "dispute",
      created: nowSeconds(),
      livemode: false,
      amount,
      charge: charge.id,
      currency,
      payment_intent: intent,
      reason: "fraudulent",
      status,
    };
    charge.disputed = true;
    this.#objects.disputes.set(dispute.id, dispute);
    this.#emit("charge.dispute.created", dispute);
    if (status === "needs_response") this.#emit("charge.dispute.funds_withdrawn", dispute);
    return dispute;
  }

  endDispute(dispute: Dispute, won: boolean): Dispute {
    const inquiry = dispute.status === "warning_needs_response";
    if (!inquiry && dispute.status !== "needs_response" && dispute.status !== "under_review")
      throw invalidRequest("This dispute is already closed.");
    dispute.status = inquiry ? "warning_closed" : won ? "won" : "lost";
    this.#emit("charge.dispute.closed", dispute);
    if (dispute.status === "won") this.#emit("charge.dispute.funds_reinstated", dispute);
    return dispute;
  }
}

function noSuchCustomer(id: string): StripeHttpError {
  return invalidRequest(`No such customer: '${id}'`, { code: "resource_missing", param: "customer" });
}

function unexpectedState(intent: PaymentIntent, verb: string): StripeHttpError {
  return invalidRequest(`You cannot ${verb} this PaymentIntent because it has a status of ${intent.status}.`, {
    code: "payment_intent_unexpected_state",
  });
}
