/**
 * The periodic comparison of the ledger with the payment processor: it agrees while both are correct, and reports
 * differences on either side.
 */
import { expect } from "chai";
import { sql } from "kysely";
import type Stripe from "stripe";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import type { PaymentDiscrepancy, ProcessorCheck, ProcessorFigures } from "../../../relayer/credits/payments/check";
import { Payments } from "../../../relayer/credits/payments/index";
import type { Store } from "../../../relayer/store";
import {
  DEPLOYMENT,
  freshAccount,
  openCredits,
  paidIntent,
  paymentKeys,
  startDouble,
  stripeClient,
  type CreditsBench,
} from "../../support/credits";
import { openTestStore } from "../../support/testStore";

describe("the periodic check of the payment processor", () => {
  let store: Store;
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;
  let check: ProcessorCheck;
  const found: PaymentDiscrepancy[] = [];

  /** A store of its own: every payment in it is in this Stripe double. */
  before(async function () {
    this.timeout(60_000);
    store = await openTestStore();
    double = await startDouble();
    bench = await openCredits({ db: store.db, payments: paymentKeys(double) });
    stripe = stripeClient(double);
    check = new Payments(store.db, paymentKeys(double), DEPLOYMENT).check((one) => found.push(one), -1);
  });
  after(async () => {
    await bench?.stop();
    await double?.stop();
    await store?.close();
  });

  async function pay(amountCents: number, paymentMethod?: string): Promise<string> {
    const accountId = freshAccount();
    const paymentIntentId = await paidIntent({ bench, stripe }, accountId, amountCents, paymentMethod);
    await bench.credits.payments.intents.confirm(accountId, paymentIntentId);
    return paymentIntentId;
  }
  async function wholePass(): Promise<ProcessorFigures> {
    const before_ = check.figures.finishedAt;
    found.length = 0;
    while (check.figures.finishedAt === before_) await check.turn();
    return check.figures;
  }

  it(
    "agrees over all pages, with refunds and disputes without a webhook, beside payments of other " + "deployments",
    async function () {
      this.timeout(30_000);
      for (let count = 0; count < 105; count++) await pay(500);
      await stripe.refunds.create({ payment_intent: await pay(1_000), amount: 300 });
      await pay(2_000, "pm_card_createDispute");
      await pay(4_000, "pm_card_createDisputeInquiry");
      const others = await stripe.paymentIntents.create({
        amount: 900,
        currency: "usd",
        metadata: { deployment: "another" },
      });
      await stripe.paymentIntents.confirm(others.id, { payment_method: "pm_card_visa" });
      const figures = await wholePass();
      expect(found).to.deep.equal([]);
      expect(figures).to.include({ processorCents: 105 * 500 + 700 + 4_000, wrong: 0 });
      expect(figures.balanceCents, "the processor's account has payments of other deployments").to.equal(
        figures.processorCents + 900,
      );
      const again = await wholePass();
      expect([again.ledgerCents, again.wrong]).to.deep.equal([figures.processorCents, 0]);
    },
  );

  it("reports a payment that was received and never credited, because its event is lost", async () => {
    const { paymentIntentId } = await bench.credits.payments.intents.create({
      accountId: freshAccount(),
      amountCents: 700,
    });
    await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: "pm_card_visa" });
    double.objects.events.clear();
    expect((await wholePass()).wrong).to.equal(1);
    expect(found).to.deep.equal([{ intentId: paymentIntentId, processorCents: 700, ledgerCents: 0 }]);
    double.objects.charges.forEach(
      (charge, id) => charge.payment_intent === paymentIntentId && double.objects.charges.delete(id),
    );
    expect((await wholePass()).wrong).to.equal(0);
  });

  it("reports a refund missing in the ledger", async () => {
    const intentId = await pay(800);
    await stripe.refunds.create({ payment_intent: intentId, amount: 100 });
    double.objects.events.clear();
    expect((await wholePass()).wrong).to.equal(1);
    expect(found).to.deep.equal([{ intentId, processorCents: 700, ledgerCents: 800 }]);
    const [charge] = [...double.objects.charges.values()].filter(({ payment_intent: intent }) => intent === intentId);
    if (charge !== undefined) charge.amount_refunded = 0;
  });

  it("reports credit that the processor has no payment for", async () => {
    await sql`insert into payments (intent_id, account_id, credited_cents) select 'pi_made_up', account_id, 1234
      from payments where account_id is not null limit 1`.execute(store.db);
    const figures = await wholePass();
    expect(found).to.deep.equal([{ processorCents: 0, ledgerCents: 1_234 }]);
    expect(figures.ledgerCents - figures.processorCents).to.equal(1_234);
  });

  it("resumes where it was after an outage of the processor", async () => {
    double.faults.plan({ kind: "error_before", where: "/v1/charges", times: 3 });
    await check.turn().then(
      () => expect.fail("it should have failed"),
      () => undefined,
    );
    double.faults.clear();
    expect((await wholePass()).wrong).to.equal(1);
  });
});
