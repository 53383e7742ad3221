import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type Stripe from "stripe";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import type { FaultKind } from "../../../scripts/dev/stripe/errors";
import { freshAccount, withPayments, type CreditsBench } from "../../support/credits";
import { expectRefusal } from "../../support/refusal";

describe("while the payment processor fails", () => {
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;

  withPayments((parts) => ({ double, bench, stripe } = parts));
  afterEach(() => double.faults.clear());

  const faults: FaultKind[] = ["error_before", "error_after", "lost_before", "lost_after"];

  it("a failure that the processor repeats under its idempotency key keeps nobody from paying", async () => {
    for (const where of ["POST /v1/customers", "POST /v1/payment_intents"]) {
      const request = { accountId: freshAccount(), amountCents: 500, attemptKey: randomUUID() };
      double.faults.plan({ kind: "error_after", where, times: 1 });
      const { paymentIntentId } = await bench.credits.payments.intents.create(request);
      expect((await bench.credits.payments.intents.create(request)).paymentIntentId, where).to.equal(paymentIntentId);
    }
  });

  it("a single failed request that had no effect or no answer is retried, and creates one intent", async () => {
    for (const kind of faults.filter((fault) => fault !== "error_after")) {
      const accountId = freshAccount();
      const before = double.objects.intents.size;
      double.faults.plan({ kind, where: "POST /v1/payment_intents", times: 1 });
      await bench.credits.payments.intents.create({ accountId, amountCents: 500 });
      expect(double.objects.intents.size, kind).to.equal(before + 1);
    }
  });

  it("a lasting failure is reported as 503 with the statement that nothing was charged", async () => {
    for (const kind of faults) {
      double.faults.plan({ kind, where: "/v1/payment_intents", times: 1_000 });
      const error = await expectRefusal(
        bench.credits.payments.intents.create({ accountId: freshAccount(), amountCents: 500 }),
        "payments_unavailable",
      );
      expect(error.status).to.equal(503);
      expect(error.retryable).to.equal(true);
      double.faults.clear();
    }
  });

  it("a confirmation without an answer credits nothing, and the next one does", async () => {
    const accountId = freshAccount();
    const { paymentIntentId } = await bench.credits.payments.intents.create({ accountId, amountCents: 500 });
    await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: "pm_card_visa" });
    double.faults.plan({ kind: "lost_before", where: `GET /v1/payment_intents/${paymentIntentId}`, times: 3 });
    await expectRefusal(bench.credits.payments.intents.confirm(accountId, paymentIntentId), "payments_unavailable");
    expect((await bench.credits.accounts.balance(accountId)).balanceCents).to.equal(0);
    expect((await bench.credits.payments.intents.confirm(accountId, paymentIntentId)).balanceCents).to.equal(500);
  });

  it("a customer whose creation timed out is created once", async () => {
    const accountId = freshAccount();
    double.faults.plan({ kind: "lost_after", where: "POST /v1/customers", times: 3 });
    await expectRefusal(bench.credits.payments.intents.create({ accountId, amountCents: 500 }), "payments_unavailable");
    await bench.credits.payments.intents.create({ accountId, amountCents: 500 });
    const customers = [...double.objects.customers.values()].filter(
      ({ metadata }) => metadata.account_id === accountId,
    );
    expect(customers).to.have.length(1);
  });

  it("the same attempt after a time-out continues with the intent that was created", async () => {
    const accountId = freshAccount();
    const attemptKey = randomUUID();
    double.faults.plan({ kind: "lost_after", where: "POST /v1/payment_intents", times: 3 });
    await expectRefusal(
      bench.credits.payments.intents.create({ accountId, amountCents: 500, attemptKey }),
      "payments_unavailable",
    );
    const { paymentIntentId } = await bench.credits.payments.intents.create({
      accountId,
      amountCents: 500,
      attemptKey,
    });
    const ours = [...double.objects.intents.values()].filter(({ metadata }) => metadata.account_id === accountId);
    expect(ours.map(({ id }) => id)).to.deep.equal([paymentIntentId]);
  });

  it("concurrent repeats of an attempt are given one intent, however many of their requests fail", async () => {
    for (let failures = 5; failures <= 8; failures++) {
      const request = { accountId: freshAccount(), amountCents: 500, attemptKey: randomUUID() };
      double.faults.plan({ kind: "error_before", where: "POST /v1/payment_intents", times: failures });
      const answers = await Promise.allSettled(
        Array.from({ length: 3 }, () => bench.credits.payments.intents.create(request)),
      );
      double.faults.clear();
      const last = await bench.credits.payments.intents.create(request);
      const given = answers.filter((answer) => answer.status === "fulfilled").map(({ value }) => value.paymentIntentId);
      expect(new Set([...given, last.paymentIntentId]).size, `${failures} failures`).to.equal(1);
    }
  });

  it("runs and writes continue: metering uses only the ledger", async () => {
    const accountId = freshAccount();
    const { paymentIntentId } = await bench.credits.payments.intents.create({ accountId, amountCents: 500 });
    await stripe.paymentIntents.confirm(paymentIntentId, { payment_method: "pm_card_visa" });
    await bench.credits.payments.intents.confirm(accountId, paymentIntentId);
    double.faults.plan({ kind: "lost_before", where: "", times: 1000 });
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 2000 });
    expect(await bench.credits.reservations.settleRun(reservationId, 1500)).to.equal(2);
  });
});
