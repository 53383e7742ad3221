/**
 * Paying an intent with a card: through Stripe.js, or in development through a form that talks to the double as
 * Stripe.js does to Stripe.
 */

export interface Card {
  readonly number: string;
  readonly expiry: string;
  readonly cvc: string;
}

/** Development: asks in place of the payer's bank; true if the payer approves. */
export type AskPayer = () => Promise<boolean>;

interface IntentState {
  readonly status?: string;
}
interface StripeAnswer {
  readonly error?: { readonly message?: string };
  readonly paymentIntent?: IntentState;
}
interface StripeCard {
  mount(element: HTMLElement): void;
  unmount(): void;
}
export interface StripeJs {
  elements(): { create(kind: "card"): StripeCard };
  retrievePaymentIntent(clientSecret: string): Promise<StripeAnswer>;
  confirmCardPayment(clientSecret: string, data: { payment_method: { card: StripeCard } }): Promise<StripeAnswer>;
}
declare global {
  interface Window {
    Stripe?: (publishableKey: string) => StripeJs;
  }
}

export const usesDouble = document.querySelector<HTMLMetaElement>('meta[name="card-form"]')?.content === "double";

const declined = (message: string | undefined): Error => new Error(message ?? "The payment did not succeed.");

const STRIPE_SCRIPT = "https://js.stripe.com/endive/stripe.js";
let loading: Promise<void> | undefined;

/** The processor's own script, which keeps card numbers away from this page; loaded on demand. */
export async function loadStripe(publishableKey: string): Promise<StripeJs> {
  loading ??= new Promise<void>((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: STRIPE_SCRIPT, onload: () => resolve() });
    script.onerror = () => {
      loading = undefined;
      reject(new Error("The card form could not be loaded. Check the connection and try again."));
    };
    document.head.append(script);
  });
  await loading;
  if (window.Stripe === undefined) throw new Error("The card form could not be loaded. Load the page again.");
  return window.Stripe(publishableKey);
}

export async function payWithStripe(stripe: StripeJs, card: StripeCard, clientSecret: string): Promise<void> {
  const { paymentIntent } = await stripe.retrievePaymentIntent(clientSecret);
  if (paymentIntent?.status === "succeeded") return;
  const { error, paymentIntent: paid } = await stripe.confirmCardPayment(clientSecret, { payment_method: { card } });
  if (error !== undefined || paid?.status !== "succeeded") throw declined(error?.message);
}

export async function payWithDouble(
  publishableKey: string,
  card: Card,
  clientSecret: string,
  askPayer: AskPayer,
): Promise<void> {
  const ask = doubleAt(publishableKey);
  const intent = `/v1/payment_intents/${clientSecret.split("_secret_")[0]}`;
  const secret = { client_secret: clientSecret };
  const { status } = await ask("GET", `${intent}?${new URLSearchParams(secret)}`);
  if (status === "succeeded") return;
  const method = await ask("POST", "/v1/payment_methods", { type: "card", ...cardFields(card) });
  const confirmed = await ask("POST", `${intent}/confirm`, { ...secret, payment_method: method.id ?? "" });
  if (confirmed.status === "requires_action")
    await ask("POST", `${intent}/authenticate`, { ...secret, outcome: (await askPayer()) ? "pass" : "fail" });
}

function doubleAt(publishableKey: string) {
  return async (
    method: string,
    path: string,
    form?: Record<string, string>,
  ): Promise<IntentState & { id?: string }> => {
    const body = form === undefined ? {} : { body: new URLSearchParams(form) };
    const answer = await fetch(`/billing/double${path}`, {
      method,
      ...body,
      headers: { Authorization: `Bearer ${publishableKey}` },
      signal: AbortSignal.timeout(30_000),
    });
    const value = (await answer.json()) as { id?: string; status?: string; error?: { message?: string } };
    if (value.error !== undefined) throw declined(value.error.message);
    return value;
  };
}

function cardFields({ number, expiry, cvc }: Card): Record<string, string> {
  const [month = "", year = ""] = expiry.split("/").map((part) => part.trim());
  return { "card[number]": number, "card[exp_month]": month, "card[exp_year]": year, "card[cvc]": cvc };
}
