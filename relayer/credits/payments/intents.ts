/** Creates and confirms payment intents. */
import { createHash, randomUUID } from "node:crypto";
import Stripe from "stripe";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId } from "../../../protocol/ids";
import { WIRE_LIMITS } from "../../../protocol/limits";
import type { Db } from "../../store/database";
import { ensureAccount, readBalance } from "../accounts";
import type { Confirmation, Intent, IntentRequest } from "../types";
import { creditIntent, recordReceipt } from "./books";
import { accountOf, CURRENCY, metadataOf, receiptOf } from "./stripeFields";
import { ask, paymentsUnavailable } from "./processor";

export class Intents {
  readonly #db: Db;
  readonly #stripe: Stripe;
  /** Identifies this deployment among those that share an account at the processor. */
  readonly #deployment: string;

  constructor(db: Db, stripe: Stripe, deployment: string) {
    this.#db = db;
    this.#stripe = stripe;
    this.#deployment = deployment;
  }

  /**
   * Errors: `amount_out_of_range`, `payments_unavailable`, `idempotency_conflict` (attempt key used with another
   * amount).
   */
  async create({ accountId, amountCents, attemptKey }: IntentRequest): Promise<Intent> {
    checkAmount(amountCents);
    await ensureAccount(this.#db, accountId);
    if (attemptKey === undefined) return this.#createAtProcessor(accountId, amountCents, randomUUID());
    const earlier = await this.#beginAttempt(accountId, amountCents, attemptKey);
    const known = earlier === undefined ? undefined : await this.#retrieve(earlier);
    return known ?? this.#createForAttempt({ accountId, amountCents, attemptKey }, earlier);
  }

  /** `forgotten` is the intent of an earlier attempt that the processor no longer knows. */
  async #createForAttempt(
    { accountId, amountCents, attemptKey }: IntentRequest & { readonly attemptKey: string },
    forgotten?: string,
  ): Promise<Intent> {
    const intent = await this.#createAtProcessor(accountId, amountCents, `${attemptKey}:${forgotten ?? ""}`);
    const { numUpdatedRows } = await this.#db
      .updateTable("payment_attempts")
      .set({ intent_id: intent.paymentIntentId })
      .where("account_id", "=", accountId)
      .where("attempt_key", "=", attemptKey)
      .where("intent_id", "is not distinct from", forgotten ?? null)
      .executeTakeFirst();
    if (numUpdatedRows > 0n) return intent;
    // A concurrent repeat was first; after a failure at the processor its intent may be another.
    const first = await this.#beginAttempt(accountId, amountCents, attemptKey);
    return first === undefined || first === intent.paymentIntentId ? intent : ((await this.#retrieve(first)) ?? intent);
  }

  /** Undefined when the processor no longer knows it (e.g. a test account that was cleared). */
  async #retrieve(intentId: string): Promise<Intent | undefined> {
    const gone = notFound();
    try {
      return intentOf(await ask(() => this.#stripe.paymentIntents.retrieve(intentId), gone));
    } catch (error) {
      if (error === gone) return undefined;
      throw error;
    }
  }

  /** Persists the attempt before calling the processor; returns the intent of an earlier attempt, if any. */
  async #beginAttempt(accountId: AccountId, amountCents: number, attemptKey: string): Promise<string | undefined> {
    await this.#db
      .insertInto("payment_attempts")
      .values({ account_id: accountId, attempt_key: attemptKey, amount_cents: amountCents, intent_id: null })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const attempt = await this.#db
      .selectFrom("payment_attempts")
      .select(["amount_cents", "intent_id"])
      .where("account_id", "=", accountId)
      .where("attempt_key", "=", attemptKey)
      .executeTakeFirstOrThrow();
    if (attempt.amount_cents !== amountCents) {
      throw new KeywrightError(
        "idempotency_conflict",
        `This Idempotency-Key was used for ${attempt.amount_cents} cents. Use a new one for another amount.`,
      );
    }
    return attempt.intent_id ?? undefined;
  }

  async #createAtProcessor(accountId: AccountId, amountCents: number, attempt: string): Promise<Intent> {
    const customer = await this.#customer(accountId);
    try {
      return await this.#createFor(customer, accountId, amountCents, attempt);
    } catch (error) {
      if (error !== CUSTOMER_GONE) throw error;
      return this.#createFor(await this.#customer(accountId, customer), accountId, amountCents, attempt);
    }
  }

  async #createFor(customer: string, accountId: AccountId, amountCents: number, attempt: string): Promise<Intent> {
    const parameters: Stripe.PaymentIntentCreateParams = {
      amount: amountCents,
      currency: CURRENCY,
      customer,
      allowed_payment_method_types: ["card"],
      metadata: metadataOf(this.#deployment, accountId),
    };
    const names = [this.#deployment, accountId, attempt, customer];
    const create = (idempotencyKey: string): Promise<Stripe.PaymentIntent> =>
      this.#stripe.paymentIntents.create(parameters, { idempotencyKey });
    return intentOf(await ask(() => createdOnce(create, names), CUSTOMER_GONE));
  }

  /**
   * Created once, with the first intent: the idempotency key covers concurrent calls, the database row everything
   * later. `gone` is a customer deleted at the processor, to be replaced.
   */
  async #customer(accountId: AccountId, gone?: string): Promise<string> {
    const row = await this.#db
      .selectFrom("credit_accounts")
      .select(["customer_id", "email"])
      .where("account_id", "=", accountId)
      .executeTakeFirstOrThrow();
    if (row.customer_id !== null && row.customer_id !== gone) return row.customer_id;
    const parameters = {
      metadata: metadataOf(this.#deployment, accountId),
      ...(row.email === null ? {} : { email: row.email }),
    };
    const names = [this.#deployment, accountId, "customer", row.email ?? "", gone ?? ""];
    const create = (idempotencyKey: string): Promise<Stripe.Customer> =>
      this.#stripe.customers.create(parameters, { idempotencyKey });
    const { id } = await ask(() => createdOnce(create, names));
    await this.#db
      .updateTable("credit_accounts")
      .set({ customer_id: id })
      .where("account_id", "=", accountId)
      .where("customer_id", "is not distinct from", gone ?? null)
      .execute();
    return id;
  }

  /**
   * Credits a succeeded intent of this account, once. Amount and currency are read from the intent. Errors:
   * `payment_intent_not_found` (unknown, or another account's), `payment_not_succeeded` {status},
   * `payments_unavailable`.
   */
  async confirm(accountId: AccountId, intentId: string): Promise<Confirmation> {
    if (!INTENT_ID.test(intentId)) throw notFound();
    const known = await this.#db
      .selectFrom("payments")
      .select(["account_id", "credited_cents", "receipt_url"])
      .where("intent_id", "=", intentId)
      .executeTakeFirst();
    if (known !== undefined && known.credited_cents > 0) {
      if (known.account_id !== accountId) throw notFound();
      if (known.receipt_url === null) await this.#lookForReceipt(intentId);
      return this.#confirmation(accountId, true);
    }
    const intent = await this.#retrieveOwn(accountId, intentId);
    const credited = await creditIntent(this.#db, { intentId: intent.id, accountId, amountCents: paidCents(intent) });
    await this.#keepReceipt(intent);
    return this.#confirmation(accountId, !credited);
  }

  /**
   * Looks the receipt up early, since the payer usually opens the history next. Failures do not matter: an event
   * delivers the receipt too.
   */
  async #lookForReceipt(intentId: string): Promise<void> {
    const intent = await this.#stripe.paymentIntents
      .retrieve(intentId, { expand: ["latest_charge"] }, IN_PASSING)
      .catch(() => undefined);
    if (intent !== undefined) await this.#keepReceipt(intent);
  }

  async #keepReceipt({ id, latest_charge: charge }: Stripe.PaymentIntent): Promise<void> {
    const receipt = receiptOf(charge);
    if (receipt !== undefined) await recordReceipt(this.#db, id, receipt);
  }

  async #retrieveOwn(accountId: AccountId, intentId: string): Promise<Stripe.PaymentIntent> {
    const intent = await ask(
      () => this.#stripe.paymentIntents.retrieve(intentId, { expand: ["latest_charge"] }),
      notFound(),
    );
    if (accountOf(intent.metadata, this.#deployment) !== accountId) throw notFound();
    return intent;
  }

  async #confirmation(accountId: AccountId, alreadyCredited: boolean): Promise<Confirmation> {
    const { balanceCents } = await readBalance(this.#db, accountId);
    return { balanceCents, alreadyCredited };
  }
}

/** Stands for a 404 when creating an intent for a customer. */
const CUSTOMER_GONE = paymentsUnavailable(
  "The payment processor no longer knows this account's customer record; try again.",
);

const IN_PASSING: Stripe.RequestOptions = { timeout: 2_000, maxNetworkRetries: 0 };

const INTENT_ID = /^pi_[A-Za-z0-9_]{1,200}$/;

function checkAmount(amountCents: number): void {
  const { amountCentsMin: least, amountCentsMax: most } = WIRE_LIMITS;
  if (!Number.isSafeInteger(amountCents) || amountCents < least || amountCents > most) {
    throw new KeywrightError("amount_out_of_range", `amount_cents must be a whole number from ${least} to ${most}.`, {
      min_cents: least,
      max_cents: most,
    });
  }
}

/** The amount received for a succeeded intent. Amount and currency come from the processor, never from the client. */
export function paidCents(intent: Stripe.PaymentIntent): number {
  if (intent.status !== "succeeded") {
    throw new KeywrightError(
      "payment_not_succeeded",
      `The payment is "${intent.status}". Complete it with its client secret, then confirm again.`,
      {
        payment_status: intent.status,
      },
    );
  }
  if (intent.currency !== CURRENCY) {
    throw new KeywrightError(
      "payment_wrong_currency",
      `The payment is in ${intent.currency}; credit is bought in ${CURRENCY}. Nothing was credited.`,
    );
  }
  return intent.amount_received;
}

/**
 * Under one idempotency key of these names. A failure of the processor's own is repeated under its key for a day: so
 * once more under another, which is as fixed. The first may have left an object that nobody sees and that moves no
 * money.
 */
async function createdOnce<T>(create: (idempotencyKey: string) => Promise<T>, names: readonly string[]): Promise<T> {
  try {
    return await create(digest(...names));
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeAPIError) || (error.statusCode ?? 0) < 500) throw error;
    return create(digest(...names, "again"));
  }
}

function intentOf(intent: Stripe.PaymentIntent): Intent {
  if (intent.client_secret === null)
    throw paymentsUnavailable("The payment processor gave no client secret; try again.");
  return { paymentIntentId: intent.id, clientSecret: intent.client_secret };
}

function notFound(): KeywrightError {
  return new KeywrightError("payment_intent_not_found", "This account has no such payment intent.");
}

/** Identifies one operation by a hash, so that its length does not depend on what the client sent. */
function digest(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
