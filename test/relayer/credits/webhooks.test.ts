import { expect } from "chai";
import Stripe from "stripe";
import type { AccountId } from "../../../protocol/ids";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import { creditIntent, recordClaim } from "../../../relayer/credits/payments/books";
import { applyEvent } from "../../../relayer/credits/payments/events";
import { expectBalancedBooks } from "../../support/books";
import {
  DEPLOYMENT,
  freshAccount,
  openCredits,
  paidIntent,
  paymentKeys,
  startDouble,
  stripeClient,
  WEBHOOK_SECRET,
  type CreditsBench,
} from "../../support/credits";
import { expectRefusal } from "../../support/refusal";
import { openWebhookEndpoint, type WebhookEndpoint } from "../../support/webhookEndpoint";

describe("webhooks", () => {
  let endpoint: WebhookEndpoint;
  let double: StripeDouble;
  let bench: CreditsBench;
  let stripe: Stripe;
  let accountId: AccountId;

  before(async () => {
    endpoint = await openWebhookEndpoint();
    double = await startDouble(endpoint.url);
    bench = await openCredits({ payments: paymentKeys(double) });
    endpoint.serve(bench.credits);
    stripe = stripeClient(double);
  });
  after(async () => {
    await double.stop();
    await endpoint.stop();
    await bench.stop();
  });
  beforeEach(() => {
    accountId = freshAccount();
  });
  afterEach(async () => {
    await double.webhooks.idle();
    Object.assign(double.webhooks.behaviour, { copies: 1, lossRate: 0, disorderMs: 0 });
    await expectBalancedBooks(bench.db);
  });

  const balance = async (): Promise<number> => (await bench.credits.accounts.balance(accountId)).balanceCents;
  const paid = (amountCents: number, card?: string): Promise<string> =>
    paidIntent({ bench, stripe }, accountId, amountCents, card);

  it("alone credit a payment whose tab was closed", async () => {
    await paid(700);
    await double.webhooks.idle();
    expect(await balance()).to.equal(700);
  });

  it("and fifty concurrent confirmations credit once", async () => {
    const intent = await paid(700);
    const confirmations = await Promise.all(
      Array.from({ length: 50 }, () => bench.credits.payments.intents.confirm(accountId, intent)),
    );
    await double.webhooks.idle();
    expect(confirmations.filter(({ alreadyCredited }) => !alreadyCredited).length).to.be.at.most(1);
    expect(await balance()).to.equal(700);
    const { entries } = await bench.credits.accounts.history(accountId, { number: 0, size: 10 });
    expect(entries.map(({ kind, amountCents }) => [kind, amountCents])).to.deep.equal([["top_up", 700]]);
  });

  it("delivered five times, late and out of order change nothing more", async () => {
    Object.assign(double.webhooks.behaviour, { copies: 5, disorderMs: 150 });
    const intent = await paid(1000);
    await stripe.refunds.create({ payment_intent: intent, amount: 100 });
    await stripe.refunds.create({ payment_intent: intent, amount: 250 });
    await double.webhooks.idle();
    expect(await balance()).to.equal(650);
  });

  it("answered with 503 are delivered again until they are accepted", async () => {
    endpoint.refuse(4);
    await paid(700);
    await double.webhooks.idle();
    expect(await balance()).to.equal(700);
  });

  describe("from other senders", () => {
    const event = (object: object = {}): string => {
      const intent = {
        id: "pi_forged",
        object: "payment_intent",
        status: "succeeded",
        amount_received: 9_999,
        currency: "usd",
        ...object,
      };
      const metadata = { deployment: DEPLOYMENT, account_id: accountId };
      return JSON.stringify({
        id: "evt_forged",
        object: "event",
        type: "payment_intent.succeeded",
        data: { object: { metadata, ...intent } },
      });
    };
    const sign = (payload: string, options: { secret?: string; timestamp?: number } = {}): string =>
      Stripe.webhooks.generateTestHeaderString({ payload, secret: WEBHOOK_SECRET, ...options });

    it(
      "unsigned, signed by another key, for another body, malformed or stale, are refused and " + "change nothing",
      async () => {
        const payload = event();
        const minutesAgo = (minutes: number): number => Math.floor(Date.now() / 1000) - minutes * 60;
        const headers: [string, string | undefined][] = [
          ["unsigned", undefined],
          ["empty", ""],
          ["malformed", "t=now,v1=zz"],
          ["another secret", sign(payload, { secret: "whsec_another" })],
          ["another body", sign(`${payload} `)],
          ["six minutes old", sign(payload, { timestamp: minutesAgo(6) })],
          ["signature without time", sign(payload).replace(/^t=\d+,/, "")],
        ];
        for (const [name, header] of headers) {
          const error = await expectRefusal(
            bench.credits.payments.handleWebhook(Buffer.from(payload), header),
            "invalid_webhook_signature",
          );
          expect(error.status, name).to.equal(401);
        }
        expect(await balance()).to.equal(0);
      },
    );

    it("replayed within the window credit nothing twice", async () => {
      const payload = event({ id: `pi_replay${accountId.slice(2, 12)}`, amount_received: 600 });
      const header = sign(payload);
      for (let time = 0; time < 3; time++) await bench.credits.payments.handleWebhook(Buffer.from(payload), header);
      expect(await balance()).to.equal(600);
    });

    it(
      "about a payment of another or unknown deployment, in another currency, or of another kind are accepted and " +
        "change nothing",
      async () => {
        const foreign = [
          event({ id: "pi_f1", metadata: { deployment: "elsewhere", account_id: accountId } }),
          event({ id: "pi_f2", metadata: {} }),
          event({ id: "pi_f3", metadata: { deployment: DEPLOYMENT, account_id: "0x12" } }),
          event({ id: "pi_f4", currency: "eur" }),
          event({ id: "pi_f5" }).replace("payment_intent.succeeded", "customer.created"),
        ];
        for (const payload of foreign)
          expect(await bench.credits.payments.handleWebhook(Buffer.from(payload), sign(payload))).to.deep.equal({
            handled: false,
          });
        expect(await balance()).to.equal(0);
      },
    );
  });

  describe("of refunds and disputes", () => {
    const disputeOf = async (intent: string): Promise<string> =>
      (await stripe.disputes.list({ payment_intent: intent })).data[0]?.id ?? "";
    const settled = async (): Promise<number> => {
      await double.webhooks.idle();
      return balance();
    };

    it("deduct refunds, cumulatively, and never more than was credited", async () => {
      const intent = await paid(1000);
      await stripe.refunds.create({ payment_intent: intent, amount: 300 });
      expect(await settled()).to.equal(700);
      await stripe.refunds.create({ payment_intent: intent });
      expect(await settled()).to.equal(0);
    });

    it("deduct a disputed payment, and credit it again when the dispute is won", async () => {
      const intent = await paid(1000, "pm_card_createDispute");
      expect(await settled()).to.equal(0);
      await stripe.disputes.update(await disputeOf(intent), { evidence: { uncategorized_text: "winning_evidence" } });
      expect(await settled()).to.equal(1000);
    });

    it("deduct a payment again when its dispute is reopened under the old id, in any order of events", async () => {
      const tell = (order: readonly number[], intentId: string) => async (): Promise<void> => {
        const claim = { claimId: `dp_${intentId}`, kind: "dispute", intentId, amountCents: 500 } as const;
        const told = [
          { ...claim, withdrawn: false, toldAt: 100 },
          { ...claim, withdrawn: true, toldAt: 200 },
          { ...claim, withdrawn: false, toldAt: 300 },
        ];
        for (const index of order) await recordClaim(bench.db, told[index] as (typeof told)[0]);
      };
      for (const order of [
        [0, 1, 2],
        [2, 1, 0],
        [1, 2, 0, 1],
        [0, 2, 1],
      ]) {
        const [accountId, intentId] = [freshAccount(), `pi_${order.join("")}${Date.now()}`];
        await creditIntent(bench.db, { intentId, accountId, amountCents: 500 });
        await tell(order, intentId)();
        expect((await bench.credits.accounts.balance(accountId)).balanceCents, order.join()).to.equal(0);
        await recordClaim(bench.db, {
          claimId: `dp_${intentId}`,
          kind: "dispute",
          intentId,
          amountCents: 500,
          withdrawn: true,
          toldAt: 400,
        });
        expect((await bench.credits.accounts.balance(accountId)).balanceCents, "won in the end").to.equal(500);
      }
    });

    it("deduct a dispute that the processor prevented only where it moved money for it", async () => {
      const intent = await paid(1000);
      expect(await settled()).to.equal(1000);
      const told = async (type: string, moved: number, created: number): Promise<number> => {
        const dispute = { id: `dp_${intent}`, payment_intent: intent, amount: 1000, status: "prevented" };
        const object = { ...dispute, balance_transactions: Array.from({ length: moved }, () => ({})) };
        const event = { type: `charge.dispute.${type}`, created, data: { object } };
        await applyEvent(bench.db, "any", event as unknown as Stripe.Event);
        return balance();
      };
      expect(await told("created", 0, 100)).to.equal(1000);
      expect(await told("funds_withdrawn", 1, 100), "in the same second").to.equal(0);
      expect(await told("created", 0, 100), "told again").to.equal(0);
      expect(await told("funds_reinstated", 2, 400)).to.equal(1000);
      expect(await told("closed", 2, 500)).to.equal(1000);
    });

    it("keep the deduction of a lost dispute", async () => {
      const intent = await paid(1000, "pm_card_createDispute");
      await stripe.disputes.close(await disputeOf(intent));
      expect(await settled()).to.equal(0);
    });

    it("deduct both a refund of one part and a dispute of the rest", async () => {
      const intent = await paid(1000);
      await stripe.refunds.create({ payment_intent: intent, amount: 400 });
      expect(await settled()).to.equal(600);
      const rest = { claimId: `dp_${intent}`, kind: "dispute", intentId: intent, amountCents: 600 } as const;
      await recordClaim(bench.db, { ...rest, withdrawn: false, toldAt: 1 });
      expect(await settled()).to.equal(0);
      await recordClaim(bench.db, { ...rest, withdrawn: true, toldAt: 2 });
      expect(await settled()).to.equal(600);
    });

    it("do not deduct the same money twice when a disputed payment is refunded as well", async () => {
      const intent = await paid(1000, "pm_card_createDispute");
      await stripe.refunds.create({ payment_intent: intent, amount: 400 });
      expect(await settled()).to.equal(0);
      await stripe.disputes.update(await disputeOf(intent), { evidence: { uncategorized_text: "winning_evidence" } });
      expect(await settled()).to.equal(600);
    });

    it("credit what a failed refund deducted, and count later successful ones", async () => {
      const intent = await paid(1000, "pm_card_refundFail");
      await stripe.refunds.create({ payment_intent: intent, amount: 300 });
      await stripe.refunds.create({ payment_intent: intent, amount: 200 });
      expect(await settled()).to.equal(1000);
      double.objects.failingRefunds.clear();
      await stripe.refunds.create({ payment_intent: intent, amount: 150 });
      expect(await settled()).to.equal(850);
    });

    it("ignore an inquiry, which moves no money", async () => {
      const intent = await paid(1000, "pm_card_createDisputeInquiry");
      expect(await settled()).to.equal(1000);
      await stripe.disputes.close(await disputeOf(intent));
      expect(await settled()).to.equal(1000);
    });

    it("may make the balance negative: metered requests are refused until it is paid", async () => {
      const intent = await paid(1000);
      await double.webhooks.idle();
      const { reservationId } = await bench.credits.reservations.reserveRun({ accountId, limitMs: 60_000 });
      await bench.credits.reservations.settleRun(reservationId, 60_000);
      await stripe.refunds.create({ payment_intent: intent });
      expect(await settled()).to.equal(-60);
      const error = await expectRefusal(
        bench.credits.reservations.reserveRun({ accountId, limitMs: 1000 }),
        "insufficient_credit",
      );
      expect(error.facts).to.include({ balance_cents: -60 });
      await paid(500);
      expect(await settled()).to.equal(440);
    });

    it("give the same result in every order, also before the payment itself", async () => {
      const intent = await paid(1000, "pm_card_createDispute");
      await stripe.refunds.create({ payment_intent: intent, amount: 100 });
      double.objects.failingRefunds.add(double.objects.intents.get(intent)?.latest_charge ?? "");
      await stripe.refunds.create({ payment_intent: intent, amount: 400 });
      double.objects.failingRefunds.clear();
      await stripe.refunds.create({ payment_intent: intent, amount: 150 });
      await stripe.disputes.update(await disputeOf(intent), { evidence: { uncategorized_text: "winning_evidence" } });
      await double.webhooks.idle();
      const events = [...double.objects.events.values()].filter(({ data }) => JSON.stringify(data).includes(intent));
      expect(events).to.have.length.greaterThan(6);
      for (let order = 0; order < 12; order++) {
        const elsewhere = await openCredits({ payments: paymentKeys(double), deployment: DEPLOYMENT });
        const copy = freshAccount();
        const renamed = (text: string): string =>
          text.replaceAll(accountId, copy).replaceAll(/\b(pi|du|ch|re)_(\w+)/g, `$1_$2x${order}`);
        for (const event of shuffled(events, order)) {
          const payload = renamed(JSON.stringify(event));
          const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: WEBHOOK_SECRET });
          await elsewhere.credits.payments.handleWebhook(Buffer.from(payload), header);
        }
        expect((await elsewhere.credits.accounts.balance(copy)).balanceCents, `order ${order}`).to.equal(750);
        await elsewhere.stop();
      }
    });
  });
});

/** The same shuffle for the same number. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  const keyed = items.map((item, index) => ({ item, key: Math.sin((seed + 1) * (index + 1) * 12.9898) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}
