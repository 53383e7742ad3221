/**
 * The processor's events: webhooks are verified, then applied. Reconciliation applies the same events again with the
 * same function, so lost webhooks are made up for and repeated events change nothing.
 */
import type Stripe from "stripe";
import { KeywrightError } from "../../../protocol/errors";
import type { Db } from "../../store/database";
import { creditIntent, recordClaim, recordReceipt, recordRefunded } from "./books";
import { paidCents } from "./intents";
import { accountOf, CURRENCY, hasTakenMoney, idOf, receiptOf } from "./stripeFields";

export const EVENT_TYPES = [
  "payment_intent.succeeded",
  "charge.succeeded",
  "charge.refunded",
  "refund.created",
  "refund.updated",
  "refund.failed",
  "charge.dispute.created",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.funds_reinstated",
  "charge.dispute.closed",
] as const;

/** Returns the event, if its signature over the raw bytes verifies and is at most five minutes old. */
export function verifiedEvent(
  stripe: Stripe,
  rawBody: Buffer,
  signature: string | undefined,
  webhookSecret: string,
): Stripe.Event {
  try {
    return stripe.webhooks.constructEvent(rawBody, signature ?? "", webhookSecret);
  } catch (error) {
    throw new KeywrightError(
      "invalid_webhook_signature",
      "The Stripe-Signature header does not fit this body, or is too old.",
      {},
      { cause: error },
    );
  }
}

/** Applies the event to the books. Returns whether it concerned a payment of this deployment. */
export async function applyEvent(db: Db, deployment: string, event: Stripe.Event): Promise<boolean> {
  switch (event.type) {
    case "payment_intent.succeeded":
      return applySuccess(db, deployment, event.data.object);
    case "charge.succeeded":
      return applyCharge(db, deployment, event.data.object);
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

/** Only the receipt is taken from the charge: the amount is credited by its intent. */
async function applyCharge(db: Db, deployment: string, charge: Stripe.Charge): Promise<boolean> {
  const intentId = idOf(charge.payment_intent);
  if (intentId === undefined || accountOf(charge.metadata, deployment) === undefined) return false;
  await keepReceipt(db, intentId, charge);
  return true;
}

async function keepReceipt(db: Db, intentId: string, charge: Stripe.Charge): Promise<void> {
  const receipt = receiptOf(charge);
  if (receipt !== undefined) await recordReceipt(db, intentId, receipt);
}

async function applyRefunded(db: Db, deployment: string, charge: Stripe.Charge): Promise<boolean> {
  const intentId = idOf(charge.payment_intent);
  if (intentId === undefined || accountOf(charge.metadata, deployment) === undefined) return false;
  await keepReceipt(db, intentId, charge);
  await recordRefunded(db, intentId, charge.amount_refunded);
  return true;
}

async function applyRefund(
  db: Db,
  { id, payment_intent: intent, amount, status }: Stripe.Refund,
  toldAt: number,
): Promise<boolean> {
  const intentId = idOf(intent);
  if (intentId === undefined) return false;
  await recordClaim(db, {
    claimId: id,
    kind: "refund",
    intentId,
    amountCents: amount,
    withdrawn: status === "failed" || status === "canceled",
    toldAt,
  });
  return true;
}

async function applyDispute(
  db: Db,
  dispute: Stripe.Dispute,
  { type, created: toldAt }: Pick<Stripe.Event, "type" | "created">,
): Promise<boolean> {
  const intentId = idOf(dispute.payment_intent);
  if (intentId === undefined) return false;
  const { status } = dispute;
  const isTaken = type === "charge.dispute.funds_withdrawn" || hasTakenMoney(dispute);
  const isOver = status === "won" || status === "warning_closed" || (status === "prevented" && !isTaken);
  const isGivenBack = type === "charge.dispute.funds_reinstated" || isOver;
  // Where nothing was taken nothing is given back: of the same second, it could hide that the money goes.
  const isPrevented = type === "charge.dispute.created" && status === "prevented";
  if (!isTaken && (isPrevented || !isGivenBack)) return false;
  await recordClaim(db, {
    claimId: dispute.id,
    kind: "dispute",
    intentId,
    amountCents: dispute.amount,
    withdrawn: isGivenBack,
    toldAt,
  });
  return true;
}
