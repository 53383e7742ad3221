/** Checks the Stripe double itself, by the real `stripe` package and by plain HTTP. */
import { expect } from "chai";
import type Stripe from "stripe";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import { startDouble, stripeClient } from "../../support/credits";

type Refusal = Partial<Stripe.errors.StripeError>;

describe("the Stripe double", () => {
  let double: StripeDouble;
  let stripe: Stripe;
  before(async () => {
    double = await startDouble();
    stripe = stripeClient(double);
  });
  after(() => double.stop());

  const intent = (amount = 500): Promise<Stripe.PaymentIntent> =>
    stripe.paymentIntents.create({ amount, currency: "usd" });
  const refusal = (promise: Promise<unknown>): Promise<Refusal> =>
    promise.then(
      () => expect.fail("it succeeded"),
      (error: Refusal) => error,
    );

  it(
    "repeats the first answer for the same idempotency key, an error for other parameters, " +
      "and a declined card as declined",
    async () => {
      const create = (amount: number): Promise<Stripe.Response<Stripe.PaymentIntent>> =>
        stripe.paymentIntents.create({ amount, currency: "usd" }, { idempotencyKey: "one" });
      const [first, second] = [await create(500), await create(500)];
      expect(second.id).to.equal(first.id);
      expect(second.lastResponse.headers["idempotent-replayed"]).to.equal("true");
      expect((await refusal(create(501))).type).to.equal("StripeIdempotencyError");
      const decline = (): Promise<unknown> =>
        stripe.paymentIntents.confirm(
          first.id,
          { payment_method: "pm_card_chargeDeclined" },
          { idempotencyKey: "two" },
        );
      expect((await refusal(decline())).code).to.equal("card_declined");
      const events = double.objects.events.size;
      expect((await refusal(decline())).code).to.equal("card_declined");
      expect(double.objects.events.size, "nothing happened the second time").to.equal(events);
    },
  );

  it("stores no answer for refused parameters: the same key may be used with corrected ones", async () => {
    const create = (amount: number): Promise<Stripe.PaymentIntent> =>
      stripe.paymentIntents.create({ amount, currency: "usd" }, { idempotencyKey: "three" });
    expect((await refusal(create(1))).code).to.equal("amount_too_small");
    expect((await create(500)).amount).to.equal(500);
  });

  it("distinguishes keys: none, a wrong one, a publishable one without and with the client secret", async () => {
    const { id, client_secret: secret } = await intent();
    const get = async (key: string, query = ""): Promise<number> =>
      (
        await fetch(`${double.url}/v1/payment_intents/${id}${query}`, {
          headers: key === "" ? {} : { authorization: `Bearer ${key}` },
        })
      ).status;
    expect(await get("")).to.equal(401);
    expect(await get("sk_live_1")).to.equal(401);
    expect(await get("pk_test_1")).to.equal(401);
    expect(await get("pk_test_1", "?client_secret=another")).to.equal(404);
    expect(await get("pk_test_1", `?client_secret=${secret}`)).to.equal(200);
    expect(await get("sk_test_whatever")).to.equal(200);
    const made = await fetch(`${double.url}/v1/payment_intents`, {
      method: "POST",
      headers: { authorization: "Bearer pk_test_1" },
      body: "amount=500&currency=usd",
    });
    expect(made.status).to.equal(401);
  });

  it("refuses unknown parameters, and the one removed in this version of the API", async () => {
    const create = (extra: object): Promise<unknown> =>
      stripe.paymentIntents.create({ amount: 500, currency: "usd", ...extra });
    expect(await refusal(create({ colour: "red" }))).to.include({ code: "parameter_unknown", param: "colour" });
    expect((await refusal(create({ payment_method_types: ["card"] }))).code).to.equal(
      "payment_method_types_no_longer_supported",
    );
    expect((await refusal(create({ amount: "5.5" }))).code).to.equal("parameter_invalid_integer");
    expect((await refusal(stripe.paymentIntents.retrieve("pi_none"))).code).to.equal("resource_missing");
  });

  it("lets an intent succeed once, after any number of declined cards", async () => {
    const { id } = await intent();
    for (const [card, code] of [
      ["pm_card_chargeDeclined", "card_declined"],
      ["pm_card_chargeDeclinedExpiredCard", "expired_card"],
      ["pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc"],
    ] as const) {
      expect((await refusal(stripe.paymentIntents.confirm(id, { payment_method: card }))).code).to.equal(code);
    }
    expect((await stripe.paymentIntents.retrieve(id)).status).to.equal("requires_payment_method");
    expect((await stripe.paymentIntents.confirm(id, { payment_method: "pm_card_visa" })).status).to.equal("succeeded");
    expect((await refusal(stripe.paymentIntents.confirm(id, { payment_method: "pm_card_visa" }))).code).to.equal(
      "payment_intent_unexpected_state",
    );
  });

  it("refunds no more than was paid", async () => {
    const { id } = await intent(800);
    await stripe.paymentIntents.confirm(id, { payment_method: "pm_card_visa" });
    await stripe.refunds.create({ payment_intent: id, amount: 500 });
    expect((await refusal(stripe.refunds.create({ payment_intent: id, amount: 301 }))).type).to.equal(
      "StripeInvalidRequestError",
    );
    await stripe.refunds.create({ payment_intent: id });
    expect((await refusal(stripe.refunds.create({ payment_intent: id }))).code).to.equal("charge_already_refunded");
  });

  it("lists all pages, newest first", async () => {
    const made: string[] = [];
    for (let index = 0; index < 7; index++) made.push((await intent(600 + index)).id);
    const listed: string[] = [];
    for await (const { id } of stripe.paymentIntents.list({ limit: 2 })) if (made.includes(id)) listed.push(id);
    expect(listed).to.deep.equal(made.reverse());
  });
});
