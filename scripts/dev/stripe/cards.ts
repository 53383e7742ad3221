/** Stripe's test cards, by payment method id and by number, and the outcome of a payment with each. */
import { StripeHttpError } from "./errors";

export type CardOutcome =
  | { readonly kind: "succeeds"; readonly then?: "dispute" | "inquiry" | "failing refunds" }
  | { readonly kind: "declined"; readonly code: string; readonly declineCode?: string; readonly message: string }
  | { readonly kind: "authenticates"; readonly then: CardOutcome };

const declined = (declineCode: string): CardOutcome => ({
  kind: "declined",
  code: "card_declined",
  declineCode,
  message: "Your card was declined.",
});
const insufficientFunds: CardOutcome = {
  kind: "declined",
  code: "card_declined",
  declineCode: "insufficient_funds",
  message: "Your card has insufficient funds.",
};
const succeeds: CardOutcome = { kind: "succeeds" };

interface TestCard {
  readonly paymentMethod: string;
  readonly number: string;
  readonly outcome: CardOutcome;
}

const card = (paymentMethod: string, number: string, outcome: CardOutcome): TestCard => ({
  paymentMethod,
  number,
  outcome,
});

const TEST_CARDS: readonly TestCard[] = [
  card("pm_card_visa", "4242424242424242", succeeds),
  card("pm_card_mastercard", "5555555555554444", succeeds),
  card("pm_card_visa_chargeDeclined", "4000000000000002", declined("generic_decline")),
  card("pm_card_chargeDeclined", "4000000000000002", declined("generic_decline")),
  card("pm_card_visa_chargeDeclinedInsufficientFunds", "4000000000009995", insufficientFunds),
  card("pm_card_chargeDeclinedInsufficientFunds", "4000000000009995", insufficientFunds),
  card("pm_card_visa_chargeDeclinedLostCard", "4000000000009987", declined("lost_card")),
  card("pm_card_visa_chargeDeclinedStolenCard", "4000000000009979", declined("stolen_card")),
  card("pm_card_chargeDeclinedExpiredCard", "4000000000000069", {
    kind: "declined",
    code: "expired_card",
    message: "Your card has expired.",
  }),
  card("pm_card_chargeDeclinedIncorrectCvc", "4000000000000127", {
    kind: "declined",
    code: "incorrect_cvc",
    message: "Your card's security code is incorrect.",
  }),
  card("pm_card_chargeDeclinedProcessingError", "4000000000000119", {
    kind: "declined",
    code: "processing_error",
    message: "An error occurred while processing your card. Try again in a little bit.",
  }),
  card("pm_card_threeDSecure2Required", "4000000000003220", { kind: "authenticates", then: succeeds }),
  card("pm_card_authenticationRequired", "4000002760003184", { kind: "authenticates", then: succeeds }),
  card("pm_card_authenticationRequiredOnSetup", "4000002500003155", { kind: "authenticates", then: succeeds }),
  card("pm_card_threeDSecureRequiredChargeDeclined", "4000008400001629", {
    kind: "authenticates",
    then: declined("generic_decline"),
  }),
  card("pm_card_refundFail", "4000000000005126", { kind: "succeeds", then: "failing refunds" }),
  card("pm_card_createDispute", "4000000000000259", { kind: "succeeds", then: "dispute" }),
  card("pm_card_createDisputeInquiry", "4000000000001976", { kind: "succeeds", then: "inquiry" }),
];

/** The outcome of a payment with this test payment method; undefined for any other id. */
export function outcomeOfPaymentMethod(id: string): CardOutcome | undefined {
  return TEST_CARDS.find((one) => one.paymentMethod === id)?.outcome;
}

export function outcomeOfNumber(number: string): CardOutcome {
  const digits = number.replace(/[ -]/g, "");
  const known = TEST_CARDS.find((one) => one.number === digits);
  if (known === undefined) {
    throw new StripeHttpError(402, {
      type: "card_error",
      code: "incorrect_number",
      param: "number",
      message: "Your card number is incorrect.",
    });
  }
  return known.outcome;
}
