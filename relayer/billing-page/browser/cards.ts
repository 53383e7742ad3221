/** Paying an intent with a card: through Stripe.js, or in development through a form of our own that talks to the double as Stripe.js talks to Stripe. */

import { element } from "./elements";
import { Failure, reach } from "./failures";

export interface CardFields {
  /** Resolves when the payment has succeeded; a declined card is a Failure in the bank's words. */
  pay(clientSecret: string): Promise<void>;
}

interface IntentState {
  readonly status?: string;
}
interface StripeAnswer {
  readonly error?: { readonly message?: string };
  readonly paymentIntent?: IntentState;
}
interface StripeJs {
  elements(): { create(kind: "card"): { mount(selector: string): void } };
  retrievePaymentIntent(clientSecret: string): Promise<StripeAnswer>;
  confirmCardPayment(clientSecret: string, data: { payment_method: { card: unknown } }): Promise<StripeAnswer>;
}
declare global {
  interface Window {
    Stripe?: (publishableKey: string) => StripeJs;
  }
}

export function openCardFields(publishableKey: string): CardFields {
  const double = document.documentElement.dataset["double"];
  return double === undefined || double === "" ? stripeFields(publishableKey) : doubleFields(double, publishableKey);
}

const declined = (message: string | undefined): Failure => new Failure(message ?? "The payment did not succeed.", "declined");

function stripeFields(publishableKey: string): CardFields {
  if (window.Stripe === undefined) throw new Failure("The card form could not be loaded. Check the connection and load the page again.", "unreachable");
  const stripe = window.Stripe(publishableKey);
  const card = stripe.elements().create("card");
  card.mount("#stripe-card");
  return {
    async pay(clientSecret) {
      const { paymentIntent } = await stripe.retrievePaymentIntent(clientSecret);
      if (paymentIntent?.status === "succeeded") return;
      const { error, paymentIntent: paid } = await stripe.confirmCardPayment(clientSecret, { payment_method: { card } });
      if (error !== undefined || paid?.status !== "succeeded") throw declined(error?.message);
    },
  };
}

function doubleFields(url: string, publishableKey: string): CardFields {
  element("test-card").hidden = false;
  const double = new Double(url, publishableKey);
  return {
    async pay(clientSecret) {
      const intent = `/v1/payment_intents/${clientSecret.split("_secret_")[0]}`;
      const secret = { client_secret: clientSecret };
      const { status } = await double.ask("GET", `${intent}?${new URLSearchParams(secret)}`);
      if (status === "succeeded") return;
      const method = await double.ask("POST", "/v1/payment_methods", { type: "card", ...cardValues() });
      const confirmed = await double.ask("POST", `${intent}/confirm`, { ...secret, payment_method: method.id ?? "" });
      if (confirmed.status === "requires_action") await double.ask("POST", `${intent}/authenticate`, { ...secret, outcome: await askPayer() });
    },
  };
}

class Double {
  constructor(
    private readonly url: string,
    private readonly publishableKey: string,
  ) {}

  async ask(method: string, path: string, form?: Record<string, string>): Promise<IntentState & { id?: string }> {
    const body = form === undefined ? {} : { body: new URLSearchParams(form) };
    const answer = await reach(this.url + path, { method, ...body, headers: { Authorization: `Bearer ${this.publishableKey}` } });
    const value = (await answer.json()) as { id?: string; status?: string; error?: { message?: string } };
    if (value.error !== undefined) throw declined(value.error.message);
    return value;
  }
}

function cardValues(): Record<string, string> {
  const [month = "", year = ""] = element<HTMLInputElement>("card-expiry")
    .value.split("/")
    .map((part) => part.trim());
  return {
    "card[number]": element<HTMLInputElement>("card-number").value,
    "card[exp_month]": month,
    "card[exp_year]": year,
    "card[cvc]": element<HTMLInputElement>("card-cvc").value,
  };
}

/** Stands for the bank's own page. */
function askPayer(): Promise<"pass" | "fail"> {
  const dialog = element<HTMLDialogElement>("authentication");
  dialog.showModal();
  return new Promise((resolve) => {
    const answer = (outcome: "pass" | "fail") => (): void => {
      dialog.close();
      resolve(outcome);
    };
    element("authentication-pass").onclick = answer("pass");
    element("authentication-fail").onclick = answer("fail");
    dialog.oncancel = answer("fail");
  });
}
