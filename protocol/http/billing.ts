/** Credit and payments. Source: docs/conformance.md §4. */
import { z } from "zod";
import { WIRE_LIMITS } from "../limits";
import { boundedNumber, cents, outHash, pageQuery, reading, reject, success, writing } from "./fields";
import { defineRoute } from "./route";

const read = { ...reading, tag: "Billing", auth: "keyOrWallet" } as const;
const write = { ...writing, tag: "Billing", auth: "keyOrWallet", price: "free" } as const;

const balanceCents = cents.meta({
  description: "US cents; positive = credit. Reservations are not yet subtracted.",
  example: 2000,
});

const stripeConfig = defineRoute({
  ...read,
  path: "/billing/stripe_config",
  summary: "The payment processor's publishable key.",
  auth: "none",
  response: z.strictObject({ publishable_key: z.string() }),
  errors: ["payments_unavailable"],
  example: { response: { publishable_key: "pk_test_51" } },
});

const balance = defineRoute({
  ...read,
  path: "/billing/balance",
  summary: "The account's credit.",
  response: z.strictObject({ balance_cents: balanceCents, balance_display: z.string(), reserved_cents: cents }),
  example: { response: { balance_cents: 2000, balance_display: "$20.00", reserved_cents: 0 } },
});

const createPaymentIntent = defineRoute({
  ...write,
  path: "/billing/create_payment_intent",
  summary: "Start a card payment. Pay with the client secret, then confirm.",
  request: {
    body: z.strictObject({
      amount_cents: z
        .number()
        .check((ctx) => {
          const { amountCentsMin: min, amountCentsMax: max } = WIRE_LIMITS;
          if (!Number.isInteger(ctx.value)) reject(ctx, "must be a whole number", { shape: true });
          else if (ctx.value < min || ctx.value > max)
            reject(ctx, `must be ${min} to ${max}`, { code: "amount_out_of_range" });
        })
        .meta({
          type: "integer",
          minimum: WIRE_LIMITS.amountCentsMin,
          maximum: WIRE_LIMITS.amountCentsMax,
          description: "US cents.",
          example: 2000,
        }),
    }),
  },
  response: z.strictObject({
    client_secret: z.string().meta({ description: "For the browser that pays." }),
    payment_intent_id: z.string(),
  }),
  errors: ["amount_out_of_range", "payments_unavailable"],
  example: { body: { amount_cents: 2000 }, response: { client_secret: "pi_1_secret_1", payment_intent_id: "pi_1" } },
  idempotentByItself: true,
  pays: true,
});

const confirmPayment = defineRoute({
  ...write,
  path: "/billing/confirm_payment",
  summary: "Credit the account with a succeeded payment of its own, once.",
  request: {
    body: z.strictObject({
      payment_intent_id: z.string().min(1, "must not be empty").max(255, "must be at most 255 characters"),
    }),
  },
  response: z.strictObject({ success, balance_cents: balanceCents, already_credited: z.literal(true).optional() }),
  errors: ["payment_intent_not_found", "payment_not_succeeded", "payment_wrong_currency", "payments_unavailable"],
  example: { body: { payment_intent_id: "pi_1" }, response: { success: true, balance_cents: 4000 } },
});

const webhook = defineRoute({
  ...write,
  path: "/billing/webhook",
  summary: "The payment processor's events, signed by it.",
  auth: "stripe",
  body: "raw",
  request: {},
  response: z.strictObject({ received: z.literal(true) }),
  errors: ["invalid_webhook_signature", "payments_unavailable"],
  example: { response: { received: true } },
  effect: false,
});

export const LEDGER_KINDS = [
  "signup_credit",
  "top_up",
  "refund",
  "dispute",
  "reversal",
  "correction",
  "write",
  "run",
] as const;

const history = defineRoute({
  ...read,
  path: "/billing/history",
  summary: "The account's ledger, newest first. For owner credentials.",
  auth: "ownerOrWallet",
  request: {
    query: pageQuery.extend({
      before: boundedNumber(1, Number.MAX_SAFE_INTEGER, "An entry's id: only entries older than that one.").optional(),
    }),
  },
  response: z.array(
    z.strictObject({
      id: z.string(),
      kind: z.enum(LEDGER_KINDS),
      amount_cents: cents.meta({ description: "US cents; positive = credit to the account.", example: -1 }),
      reference: z.string().meta({ description: "Submission, run or payment intent." }),
      api_key_hash: outHash.optional().meta({ description: "The usage key that spent it." }),
      receipt_url: z
        .url({ protocol: /^https$/ })
        .optional()
        .meta({ description: "The payment processor's receipt of the payment, on its own site." }),
      created_at: z.iso.datetime(),
    }),
  ),
  example: {
    response: [
      { id: "2", kind: "write", amount_cents: -1, reference: "d3".repeat(16), created_at: "2026-11-20T12:00:00.000Z" },
    ],
  },
  paged: true,
});

export const billingRoutes = { stripeConfig, balance, createPaymentIntent, confirmPayment, webhook, history };
