/** A payment from start to credit, resumable where it stopped. */
import { ClientError, type Client } from "../../../client";
import { codeOf, wordsOf } from "../../components/failures";
import { centsIn, dollars } from "../../components/text";
import { attemptFor, forgetAttempt, openAttempt, remember, type Attempt } from "./attempt";

export type Payments = Pick<Client, "createPaymentIntent" | "confirmPayment">;

const CENTS_MIN = 500;

/** @throws Error with a readable message when the amount is invalid. */
export function centsOf(typed: string): number {
  const cents = centsIn(typed);
  if (cents === undefined || cents < CENTS_MIN) throw new Error("Enter an amount in dollars: 5.00 or more.");
  return cents;
}

/** Pays and credits; resolves with a message. `pay` charges the card. */
export async function addFunds(
  account: string,
  payments: Payments,
  amountCents: number,
  pay: (clientSecret: string) => Promise<void>,
): Promise<string> {
  // One for another amount may have been charged: it is credited before it is forgotten.
  if (openAttempt(account)?.amountCents !== amountCents) await resumePayment(account, payments);
  const attempt = attemptFor(account, amountCents);
  const intent = await payments
    .createPaymentIntent({ amount_cents: amountCents }, { idempotencyKey: attempt.key })
    .catch(carryOn);
  remember({ ...attempt, paymentIntentId: intent.payment_intent_id });
  await pay(intent.client_secret);
  await credit(payments, intent.payment_intent_id);
  forgetAttempt(attempt);
  return `Thank you: ${dollars(amountCents)} has been credited.`;
}

function carryOn(error: unknown): never {
  if (error instanceof ClientError && error.retryable)
    throw new Error("There was no answer. Nothing is paid twice: press again to carry on where it stopped.");
  throw error;
}

/** The card is already charged, so a failure here must not read like a failed payment. */
async function credit(payments: Payments, paymentIntentId: string): Promise<void> {
  try {
    await payments.confirmPayment({ payment_intent_id: paymentIntentId });
  } catch (error) {
    throw new Error(
      "Your card was charged, and the credit will arrive by itself within minutes. You need not pay again. " +
        `(${wordsOf(error)})`,
    );
  }
}

/**
 * Credits a payment that succeeded before the page was closed; an unfinished one can be continued. Resolves with a
 * message, if any.
 */
export async function resumePayment(account: string, payments: Payments): Promise<string | undefined> {
  const open = openAttempt(account);
  if (open?.paymentIntentId === undefined) return undefined;
  try {
    await payments.confirmPayment({ payment_intent_id: open.paymentIntentId });
  } catch (error) {
    return notFinished(open, error);
  }
  forgetAttempt(open);
  return `Your payment of ${dollars(open.amountCents)} has been credited.`;
}

function notFinished(open: Attempt, error: unknown): string | undefined {
  const isCanceled = error instanceof ClientError && error.facts["payment_status"] === "canceled";
  if (codeOf(error) === "payment_not_succeeded" && !isCanceled)
    return `A payment of ${dollars(open.amountCents)} was not finished. Add the same amount to go on with it.`;
  if (codeOf(error) === "payment_intent_not_found" || isCanceled) forgetAttempt(open);
  return undefined;
}
