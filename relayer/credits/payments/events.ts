/**
 * The processor's events: verified where they come from outside, then applied. Reconciliation applies the same events again by the same function,
 * so what a webhook lost is found, and what it brought changes nothing.
 */
import type Stripe from "stripe";
import { KeywrightError } from "../../../protocol/errors";
import type { Db } from "../../store/database";
import { creditIntent, recordClaim, recordRefunded } from "./books";
import { paidCents } from "./intents";
import { accountOf, CURRENCY, idOf } from "./ours";

export const EVENT_TYPES = [
  "payment_intent.succeeded",
  "charge.refunded",
  "refund.created",
  "refund.updated",
  "refund.failed",
  "charge.dispute.created",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.funds_reinstated",
  "charge.dispute.closed",
] as const;

/** The event, if the signature over the raw bytes is ours and not older than five minutes. */
export function verifiedEvent(stripe: Stripe, rawBody: Buffer, signature: string | undefined, webhookSecret: string): Stripe.Event {
  try {
    return stripe.webhooks.constructEvent(rawBody, signature ?? "", webhookSecret);
  } catch (error) {
    throw new KeywrightError("invalid_webhook_signature", "The Stripe-Signature header does not fit this body, or is too old.", {}, { cause: error });
  }
}

/** Moves the books to what the event says. Returns whether it was about a payment of ours. */
export async function applyEvent(db: Db, deployment: string, event: Stripe.Event): Promise<boolean> {
  switch (event.type) {
    case "payment_intent.succeeded":
      return applySuccess(db, deployment, event.data.object);
    case "charge.refunded":
      return applyRefunded(db, deployment, event.data.object);
    case "refund.created":
    case "refund.updated":
    case "refund.failed":
      return applyRefund(db, event.data.object, event.created);
    case "charge.dispute.created":
    case "charge.dispute.funds_withdrawn":
    case "charge.dispute.funds_reinstated":
    case "charge.dispute.closed":
      return applyDispute(db, event.data.object, event);
    default:
      return false;
  }
}

async function applySuccess(db: Db, deployment: string, intent: Stripe.PaymentIntent): Promise<boolean> {
  const accountId = accountOf(intent.metadata, deployment);
  if (accountId === undefined || intent.currency !== CURRENCY) return false;
  await creditIntent(db, { intentId: intent.id, accountId, amountCents: paidCents(intent) });
  return true;
}

async function applyRefunded(db: Db, deployment: string, charge: Stripe.Charge): Promise<boolean> {
  const intentId = idOf(charge.payment_intent);
  if (intentId === undefined || accountOf(charge.metadata, deployment) === undefined) return false;
  await recordRefunded(db, intentId, charge.amount_refunded);
  return true;
}

async function applyRefund(db: Db, { id, payment_intent: intent, amount, status }: Stripe.Refund, toldAt: number): Promise<boolean> {
  const intentId = idOf(intent);
  if (intentId === undefined) return false;
  await recordClaim(db, { claimId: id, kind: "refund", intentId, amountCents: amount, withdrawn: status === "failed" || status === "canceled", toldAt });
  return true;
}

/** An inquiry ("warning_…") has taken no money; it counts when it becomes a dispute. */
async function applyDispute(db: Db, dispute: Stripe.Dispute, { type, created: toldAt }: Pick<Stripe.Event, "type" | "created">): Promise<boolean> {
  const intentId = idOf(dispute.payment_intent);
  if (intentId === undefined) return false;
  const reinstated = type === "charge.dispute.funds_reinstated" || dispute.status === "won" || dispute.status === "warning_closed";
  const withdrawn = type === "charge.dispute.funds_withdrawn" || !dispute.status.startsWith("warning_");
  if (!reinstated && !withdrawn) return false;
  await recordClaim(db, { claimId: dispute.id, kind: "dispute", intentId, amountCents: dispute.amount, withdrawn: reinstated, toldAt });
  return true;
}
