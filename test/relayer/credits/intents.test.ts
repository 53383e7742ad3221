import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type Stripe from "stripe";
import type { AccountId } from "../../../protocol/ids";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import { DEPLOYMENT, freshAccount, openCredits, withPayments, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

describe("payment intents", () => {
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;
  let accountId: AccountId;

  withPayments((parts) => ({ double, bench, stripe } = parts));
  beforeEach(() => {
    accountId = freshAccount();
  });

  const create = async (amountCents = 500, attemptKey?: string): Promise<string> =>
    (await bench.credits.payments.intents.create({ accountId, amountCents, attemptKey })).paymentIntentId;
  const pay = (intentId: string, card = "pm_card_visa"): Promise<unknown> =>
    stripe.paymentIntents.confirm(intentId, { payment_method: card });
  const balance = async (): Promise<number> => (await bench.credits.accounts.balance(accountId)).balanceCents;
  const nothingMoved = async (): Promise<void> => {
    expect(await balance()).to.equal(0);
  };

  it("are for cards only, in dollars, and name deployment and account", async () => {
    const intent = await stripe.paymentIntents.retrieve(await create(1234));
    expect(intent).to.deep.include({ amount: 1234, currency: "usd", allowed_payment_method_types: ["card"] });
    expect(intent.metadata).to.deep.equal({ deployment: DEPLOYMENT, account_id: accountId });
  });

  it("accept amounts from 500 to 99,999,999 whole cents and no others", async () => {
    for (const amountCents of [500, 99_999_999]) expect(await create(amountCents)).to.match(/^pi_/);
    const intents = double.objects.intents.size;
    for (const amountCents of [
      0,
      499,
      -500,
      500.5,
      100_000_000,
      1e300,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      "500" as unknown as number,
    ]) {
      await expectRefusal(bench.credits.payments.intents.create({ accountId, amountCents }), "amount_out_of_range");
    }
    expect(double.objects.intents.size, "none reached the processor").to.equal(intents);
  });

  it("are credited once they have succeeded, with the received amount", async () => {
    const intent = await create(700);
    await pay(intent);
    expect(await bench.credits.payments.intents.confirm(accountId, intent)).to.deep.equal({
      balanceCents: 700,
      alreadyCredited: false,
    });
  });

  it("report an earlier credit, also while the processor is unavailable", async () => {
    const intent = await create();
    await pay(intent);
    await bench.credits.payments.intents.confirm(accountId, intent);
    double.faults.plan({ kind: "lost_before", where: "/v1/payment_intents", times: 10 });
    expect(await bench.credits.payments.intents.confirm(accountId, intent)).to.deep.equal({
      balanceCents: 500,
      alreadyCredited: true,
    });
    double.faults.clear();
  });

  it("are not credited while they are unpaid, declined, waiting for the bank or canceled", async () => {
    const ends: [string, (intent: string) => Promise<unknown>, string][] = [
      ["unpaid", async () => undefined, "requires_payment_method"],
      ["declined", (intent) => pay(intent, "pm_card_chargeDeclined").catch(() => undefined), "requires_payment_method"],
      ["waiting for the bank", (intent) => pay(intent, "pm_card_threeDSecure2Required"), "requires_action"],
      ["canceled", (intent) => stripe.paymentIntents.cancel(intent), "canceled"],
    ];
    for (const [name, end, status] of ends) {
      const intent = await create();
      await end(intent);
      const error = await expectRefusal(
        bench.credits.payments.intents.confirm(accountId, intent),
        "payment_not_succeeded",
      );
      expect(error.facts, name).to.deep.equal({ payment_status: status });
    }
    await nothingMoved();
  });

  it("of another account are not found, whether paid or credited", async () => {
    const owner = freshAccount();
    const { paymentIntentId } = await bench.credits.payments.intents.create({ accountId: owner, amountCents: 500 });
    await expectRefusal(bench.credits.payments.intents.confirm(accountId, paymentIntentId), "payment_intent_not_found");
    await pay(paymentIntentId);
    await expectRefusal(bench.credits.payments.intents.confirm(accountId, paymentIntentId), "payment_intent_not_found");
    await bench.credits.payments.intents.confirm(owner, paymentIntentId);
    await expectRefusal(bench.credits.payments.intents.confirm(accountId, paymentIntentId), "payment_intent_not_found");
    await nothingMoved();
  });

  it("that are unknown, malformed, or of another deployment are not found", async () => {
    const elsewhere = await stripe.paymentIntents.create({
      amount: 500,
      currency: "usd",
      metadata: { deployment: "1:0x0000000000000000000000000000000000000001", account_id: accountId },
    });
    await pay(elsewhere.id);
    const bare = await stripe.paymentIntents.create({ amount: 500, currency: "usd" });
    await pay(bare.id);
    for (const id of [
      elsewhere.id,
      bare.id,
      "pi_unknown",
      "",
      "pi_\u0000",
      "pi_1' or 1=1",
      "../customers",
      "pi_1/confirm",
      "cus_1",
      `pi_${"x".repeat(300)}`,
      "pi_1?expand[]=customer",
    ]) {
      await expectRefusal(bench.credits.payments.intents.confirm(accountId, id), "payment_intent_not_found");
    }
    await nothingMoved();
  });

  it("in another currency are not credited", async () => {
    const intent = await stripe.paymentIntents.create({
      amount: 500,
      currency: "jpy",
      metadata: { deployment: DEPLOYMENT, account_id: accountId },
    });
    await pay(intent.id);
    await expectRefusal(bench.credits.payments.intents.confirm(accountId, intent.id), "payment_wrong_currency");
    await nothingMoved();
  });

  it(
    "created twice with one attempt key are one: concurrently, after a lost answer, and at " + "any later time",
    async () => {
      const attempt = randomUUID();
      double.faults.plan({ kind: "lost_after", where: "POST /v1/payment_intents", times: 1 });
      const ids = await Promise.all(Array.from({ length: 5 }, () => create(900, attempt)));
      const again = await bench.credits.payments.intents.create({ accountId, amountCents: 900, attemptKey: attempt });
      expect(new Set([...ids, again.paymentIntentId]).size).to.equal(1);
      expect(again.clientSecret).to.include(again.paymentIntentId);
    },
  );

  it("created with one attempt key and two amounts are refused", async () => {
    const attempt = randomUUID();
    await create(900, attempt);
    await expectRefusal(create(901, attempt), "idempotency_conflict");
  });

  it("created with an attempt key whose intent the processor has deleted are created again", async () => {
    const attempt = randomUUID();
    const forgotten = await create(900, attempt);
    const customer = double.objects.intents.get(forgotten)?.customer ?? "";
    double.objects.intents.delete(forgotten);
    double.objects.customers.delete(customer);
    const fresh = await create(900, attempt);
    expect(fresh).to.not.equal(forgotten);
    expect(await create(900, attempt)).to.equal(fresh);
  });

  it("with the same attempt key of two accounts are two", async () => {
    const attempt = randomUUID();
    const mine = await create(900, attempt);
    const theirs = await bench.credits.payments.intents.create({
      accountId: freshAccount(),
      amountCents: 900,
      attemptKey: attempt,
    });
    expect(theirs.paymentIntentId).to.not.equal(mine);
  });

  it("of one account belong to one customer, created once with the first e-mail address", async () => {
    await bench.credits.accounts.rememberEmail(accountId, "first@example.org");
    await bench.credits.accounts.rememberEmail(accountId, "second@example.org");
    const intents = await Promise.all(Array.from({ length: 8 }, () => create()));
    const customers = new Set(intents.map((id) => double.objects.intents.get(id)?.customer));
    expect(customers.size).to.equal(1);
    const [customer] = customers;
    expect(double.objects.customers.get(customer ?? "")?.email).to.equal("first@example.org");
  });

  it("get a new customer when the processor has deleted the old one", async () => {
    const first = double.objects.intents.get(await create())?.customer ?? "";
    double.objects.customers.delete(first);
    const second = double.objects.intents.get(await create())?.customer;
    expect(second).to.be.a("string").and.not.equal(first);
    expect(double.objects.intents.get(await create())?.customer).to.equal(second);
  });
});

describe("without payment keys", () => {
  it("every call to the processor is refused, and metering continues on the ledger", async () => {
    const { credits, stop } = await openCredits();
    const accountId = freshAccount();
    expect(() => credits.payments).to.throw("payments_unavailable");
    await expectRefusal(credits.reservations.reserveRun({ accountId, limitMs: 1000 }), "insufficient_credit");
    await stop();
  });
});
