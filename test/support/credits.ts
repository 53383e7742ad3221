/** Credits over the shared store and a separate Stripe double, for tests of the ledger and of payments. */
import { randomBytes } from "node:crypto";
import Stripe from "stripe";
import type { AccountId, KeyId } from "../../protocol/ids";
import { Secret } from "../../protocol/secret";
import { Credits, type CreditsOptions, type PaymentKeys } from "../../relayer/credits/index";
import { CreditAccounts } from "../../relayer/credits/creditAccounts";
import { Reservations } from "../../relayer/credits/reservations";
import { grantSignupCredit } from "../../relayer/credits/signup";
import type { Db } from "../../relayer/store/database";
import { Instance } from "../../relayer/store/instance";
import { startStripeDouble, type StripeDouble } from "../../scripts/dev/stripe/server";
import { expectBalancedBooks } from "./books";
import { sharedStore } from "./store";

export const DEPLOYMENT = "31337:0x5FbDB2315678afecb367f032d93F642f64180aa3";
export const WEBHOOK_SECRET = "whsec_test";

export const freshAccount = (): AccountId => `0x${randomBytes(32).toString("hex")}` as AccountId;
export const freshKey = (): KeyId => `0x${randomBytes(32).toString("hex")}` as KeyId;

export interface CreditsBench {
  readonly db: Db;
  readonly credits: Credits;
  readonly instance: Instance;
  /** Failures reported by background work. */
  readonly errors: unknown[];
  stop(): Promise<void>;
}

type Adjustable = "signup" | "prices" | "payments" | "deployment" | "recordMs";
export interface BenchOptions extends Partial<Pick<CreditsOptions, Adjustable>> {
  readonly db?: Db;
}

export async function openCredits(options: BenchOptions = {}): Promise<CreditsBench> {
  const db = options.db ?? (await sharedStore()).db;
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const instance = new Instance({ db, onError, renewalMs: 5_000 });
  await instance.start();
  const credits = new Credits({
    instanceId: instance.id,
    prices: { managementWriteCents: 1, runSecondCents: 1 },
    signup: { cents: 0, dailyCapCents: undefined, everyAccount: false },
    deployment: DEPLOYMENT,
    onError,
    ...options,
    db,
  });
  const stop = async (): Promise<void> => {
    await credits.stop();
    await instance.stop();
  };
  return { db, credits, instance, errors, stop };
}

/** Reservations as another instance sees them, which ends what dead ones left. */
export const reservationsOf = (db: Db, instanceId: string): Reservations =>
  new Reservations({
    db,
    instanceId,
    prices: { managementWriteCents: 1, runSecondCents: 1 },
    accounts: new CreditAccounts(db, { cents: 0, dailyCapCents: undefined, everyAccount: false }),
    onError: () => undefined,
  });

export function paymentKeys(double: StripeDouble): PaymentKeys {
  return {
    secretKey: new Secret("sk_test_ours"),
    publishableKey: "pk_test_ours",
    webhookSecret: new Secret(WEBHOOK_SECRET),
    apiBase: double.url,
  };
}

/** Credits, a Stripe double without webhooks, and a client of it. */
export interface PaymentsBench {
  readonly double: StripeDouble;
  readonly bench: CreditsBench;
  readonly stripe: Stripe;
}

/** A payments bench for the tests of a `describe`; after each of them the ledger has to balance. */
export function withPayments(opened: (parts: PaymentsBench) => void): void {
  let parts: PaymentsBench;
  before(async () => {
    const double = await startDouble();
    parts = { double, bench: await openCredits({ payments: paymentKeys(double) }), stripe: stripeClient(double) };
    opened(parts);
  });
  after(async () => {
    await parts.bench.stop();
    await parts.double.stop();
  });
  afterEach(() => expectBalancedBooks(parts.bench.db));
}

/** A payment intent of the account that a card has paid. */
export async function paidIntent(
  { bench, stripe }: Pick<PaymentsBench, "bench" | "stripe">,
  accountId: AccountId,
  amountCents: number,
  card = "pm_card_visa",
): Promise<string> {
  const { paymentIntentId } = await bench.credits.payments.intents.create({ accountId, amountCents });
  await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: card });
  return paymentIntentId;
}

/** A Stripe client, as the processor's own dashboard or another client would use. */
export function stripeClient(double: StripeDouble, key = "sk_test_ours"): Stripe {
  const { hostname, port } = new URL(double.url);
  return new Stripe(key, { host: hostname, port, protocol: "http", telemetry: false, maxNetworkRetries: 0 });
}

export function startDouble(webhookUrl?: string): Promise<StripeDouble> {
  return startStripeDouble({
    port: 0,
    webhookUrl,
    webhookSecret: WEBHOOK_SECRET,
    retryDelaysMs: [20, 50, 100, 200, 400],
  });
}

/** Puts credit on an account without the processor. */
export async function fund(db: Db, accountId: AccountId, cents: number): Promise<void> {
  await grantSignupCredit(db, { cents, dailyCapCents: undefined, everyAccount: false }, accountId);
}
