import { expect } from "chai";
import type Stripe from "stripe";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import { Payments } from "../../../relayer/credits/payments/index";
import {
  DEPLOYMENT,
  freshAccount,
  paidIntent,
  paymentKeys,
  withPayments,
  type CreditsBench,
} from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

describe("reconciliation with the processor", () => {
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;
  let payments: Payments;

  withPayments((parts) => {
    ({ double, bench, stripe } = parts);
    payments = new Payments(bench.db, paymentKeys(double), DEPLOYMENT);
  });

  const paid = (accountId: ReturnType<typeof freshAccount>, amountCents: number): Promise<string> =>
    paidIntent({ bench, stripe }, accountId, amountCents);
  const balance = async (accountId: ReturnType<typeof freshAccount>): Promise<number> =>
    (await bench.credits.accounts.balance(accountId)).balanceCents;

  it(
    "finds payments, refunds and disputes without a webhook, over all pages, and changes nothing the " + "second time",
    async () => {
      const accounts = Array.from({ length: 40 }, freshAccount);
      for (const account of accounts) {
        const intent = await paid(account, 500);
        if (account === accounts[0]) await stripe.refunds.create({ payment_intent: intent, amount: 200 });
      }
      for (let time = 0; time < 2; time++) {
        expect(await payments.reconcile()).to.be.at.least(41);
        expect(await balance(accounts[0] as (typeof accounts)[0])).to.equal(300);
        for (const account of accounts.slice(1)) expect(await balance(account)).to.equal(500);
      }
    },
  );

  it("finds a payment made long after its intent: events are dated by their occurrence", async () => {
    const account = freshAccount();
    const { paymentIntentId } = await bench.credits.payments.intents.create({ accountId: account, amountCents: 500 });
    const intent = double.objects.intents.get(paymentIntentId);
    double.objects.intents.set(
      paymentIntentId,
      Object.assign(intent ?? {}, { created: Math.floor(Date.now() / 1000) - 20 * 24 * 3600 }) as never,
    );
    await payments.reconcile();
    await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: "pm_card_visa" });
    await payments.reconcile();
    expect(await balance(account)).to.equal(500);
  });

  it("resumes at the same place when the processor fails in between", async () => {
    const account = freshAccount();
    await paid(account, 500);
    double.faults.plan({ kind: "error_before", where: "GET /v1/events", times: 3 });
    await expectRefusal(payments.reconcile(), "payments_unavailable");
    expect(await balance(account)).to.equal(0);
    await payments.reconcile();
    expect(await balance(account)).to.equal(500);
  });

  it("misses nothing after a machine whose clock was ahead", async () => {
    const account = freshAccount();
    await payments.reconcile();
    const value = JSON.stringify(Math.floor(Date.now() / 1000) + 24 * 3600);
    const settings = bench.db.updateTable("credit_settings").where("name", "=", "events_applied_until");
    await settings.set({ value }).execute();
    await paid(account, 500);
    await payments.reconcile();
    expect(await balance(account)).to.equal(500);
    const { value: stored } = await bench.db
      .selectFrom("credit_settings")
      .select("value")
      .where("name", "=", "events_applied_until")
      .executeTakeFirstOrThrow();
    expect(Number(stored)).to.be.at.most(Date.now() / 1000);
  });

  it("starts automatically with credits", async () => {
    const account = freshAccount();
    await paid(account, 500);
    bench.credits.start();
    for (let turn = 0; turn < 100 && (await balance(account)) === 0; turn++)
      await new Promise((done) => setTimeout(done, 20));
    expect(await balance(account)).to.equal(500);
    expect(bench.errors).to.deep.equal([]);
  });
});
