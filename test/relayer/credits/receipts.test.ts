/**
 * The receipt of a payment for its owner: the processor's own page, from the first answer or event that has it, and
 * never another address.
 */
import { expect } from "chai";
import type Stripe from "stripe";
import type { AccountId } from "../../../protocol/ids";
import { creditIntent } from "../../../relayer/credits/payments/books";
import { Payments } from "../../../relayer/credits/payments/index";
import { receiptOf } from "../../../relayer/credits/payments/stripeFields";
import type { Charge } from "../../../scripts/dev/stripe/objects";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import {
  DEPLOYMENT,
  freshAccount,
  fund,
  paidIntent,
  paymentKeys,
  withPayments,
  type CreditsBench,
} from "../../support/credits";

describe("receipts", () => {
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;
  let payments: Payments;
  let accountId: AccountId;

  withPayments((parts) => {
    ({ double, bench, stripe } = parts);
    payments = new Payments(bench.db, paymentKeys(double), DEPLOYMENT);
  });
  beforeEach(() => {
    accountId = freshAccount();
  });

  const paid = (account = accountId): Promise<string> => paidIntent({ bench, stripe }, account, 700);
  const chargeOf = (intent: string): Charge => {
    const charge = double.objects.charges.get(double.objects.intents.get(intent)?.latest_charge ?? "");
    if (charge === undefined) throw new Error(`${intent} has no charge`);
    return charge;
  };
  const shown = async (account = accountId): Promise<(string | undefined)[][]> => {
    const { entries } = await bench.credits.accounts.history(account, { number: 0, size: 10 });
    return entries.map(({ kind, receiptUrl }) => [kind, receiptUrl]);
  };

  it("are in the confirmation, and in no other entry", async () => {
    await fund(bench.db, accountId, 500);
    const intent = await paid();
    await bench.credits.payments.intents.confirm(accountId, intent);
    expect(await shown()).to.deep.equal([
      ["top_up", chargeOf(intent).receipt_url],
      ["signup_credit", undefined],
    ]);
  });

  it(
    "are in the confirmation of a payment whose webhook came before its charge; a silent processor " + "delays nothing",
    async () => {
      const intent = await paid();
      await creditIntent(bench.db, { intentId: intent, accountId, amountCents: 700 });
      double.faults.plan({ kind: "error_before", where: "GET /v1/payment_intents", times: 1 });
      for (const receipt of [undefined, chargeOf(intent).receipt_url]) {
        expect((await bench.credits.payments.intents.confirm(accountId, intent)).alreadyCredited).to.equal(true);
        expect(await shown()).to.deep.equal([["top_up", receipt]]);
      }
    },
  );

  it("come with the events when no client confirms, and are shown beside the refund, too", async () => {
    const intent = await paid();
    const other = freshAccount();
    const others = await paid(other);
    await stripe.refunds.create({ payment_intent: intent, amount: 200 });
    for (let time = 0; time < 2; time++) await payments.reconcile();
    const { receipt_url: receipt } = chargeOf(intent);
    expect(await shown()).to.deep.equal([
      ["refund", receipt],
      ["top_up", receipt],
    ]);
    expect(await shown(other)).to.deep.equal([["top_up", chargeOf(others).receipt_url]]);
    expect(chargeOf(others).receipt_url).to.not.equal(receipt);
  });

  it("are dropped when they lead anywhere but to the processor's own site", async () => {
    for (const address of ["http://pay.stripe.com/receipts/1", "https://pay.stripe.com.example/receipts/1"]) {
      const account = freshAccount();
      const intent = await paid(account);
      Object.assign(chargeOf(intent), { receipt_url: address });
      await bench.credits.payments.intents.confirm(account, intent);
      expect(await shown(account), address).to.deep.equal([["top_up", undefined]]);
    }
  });

  it("are recognised by scheme and host", () => {
    for (const address of [
      "https://pay.stripe.com/receipts/payment/CAcQARo?s=ap",
      "https://stripe.com/r",
      "https://dashboard.stripe.com/receipts/1",
    ])
      expect(receiptOf({ receipt_url: address }), address).to.equal(address);
    for (const address of [
      "http://pay.stripe.com/r",
      "javascript:alert(1)//pay.stripe.com",
      "data:text/html,https://pay.stripe.com",
      "https://stripe.com.example/r",
      "https://notstripe.com/r",
      "https://pay.stripe.com@example.com/r",
      "https://user:word@pay.stripe.com/r",
      "https://pay.stripe.com:8443/r",
      "//pay.stripe.com/r",
      "pay.stripe.com/r",
      `https://pay.stripe.com/${"r".repeat(2_000)}`,
      "",
    ])
      expect(receiptOf({ receipt_url: address }), address).to.equal(undefined);
    for (const charge of [null, undefined, "ch_1", { receipt_url: null }])
      expect(receiptOf(charge)).to.equal(undefined);
  });
});
