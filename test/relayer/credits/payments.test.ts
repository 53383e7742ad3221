import { expect } from "chai";
import type Stripe from "stripe";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import { freshAccount, openCredits, paymentKeys, startDouble, stripeClient, type CreditsBench } from "../../support/credits";

describe("payments", () => {
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;

  before(async () => {
    double = await startDouble();
    bench = await openCredits({ payments: paymentKeys(double) });
    stripe = stripeClient(double);
  });
  after(async () => {
    await bench.stop();
    await double.stop();
  });

  it("credits a succeeded intent", async () => {
    const accountId = freshAccount();
    const { paymentIntentId } = await bench.credits.createIntent({ accountId, amountCents: 500 });
    await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: "pm_card_visa" });
    expect(await bench.credits.confirmIntent(accountId, paymentIntentId)).to.deep.equal({ balanceCents: 500, alreadyCredited: false });
    expect(await bench.credits.confirmIntent(accountId, paymentIntentId)).to.deep.equal({ balanceCents: 500, alreadyCredited: true });
  });
  it("runs", async () => {
    const accountId = freshAccount();
    const { paymentIntentId } = await bench.credits.createIntent({ accountId, amountCents: 500 });
    await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: "pm_card_visa" });
    await bench.credits.confirmIntent(accountId, paymentIntentId);
    const r = await bench.credits.reserveRun({ accountId, limitMs: 60_000 });
    expect(r.limitMs).to.equal(60_000);
    expect(await bench.credits.balance(accountId)).to.deep.equal({ balanceCents: 500, reservedCents: 60 });
    expect(await bench.credits.settleRun(r.reservationId, 1500)).to.equal(2);
    expect(await bench.credits.balance(accountId)).to.deep.equal({ balanceCents: 498, reservedCents: 0 });
  });
});
