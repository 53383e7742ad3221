/**
 * Random histories of top-ups, runs, writes, refunds, disputes, lost and repeated events, crashes and restarts,
 * concurrently. Afterwards the ledger balances, and each account has exactly the sum of its acknowledged operations and
 * the processor's records.
 */
import fc from "fast-check";
import type Stripe from "stripe";
import type { StripeDouble } from "../../../scripts/dev/stripe/server";
import { count, SEED } from "../../support/counts";
import { startDouble, stripeClient } from "../../support/credits";
import { CreditsHistory, ACCOUNTS, type Act, type End } from "../../support/creditsHistory";

const account = fc.nat(ACCOUNTS - 1);
const end = fc.constantFrom<End>("settle", "settle", "release", "vanish");
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("topUp" as const),
      account,
      cents: fc.integer({ min: 500, max: 600 }),
      confirms: fc.nat(3),
      card: fc.constantFrom("pm_card_visa", "pm_card_createDispute", "pm_card_refundFail"),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("run" as const),
      account,
      capped: fc.boolean(),
      limitSeconds: fc.integer({ min: 1, max: 60 }),
      durationMs: fc.nat(70_000),
      end,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("write" as const),
      account,
      capped: fc.boolean(),
      cents: fc.integer({ min: 1, max: 30 }),
      bind: fc.boolean(),
      end,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("refund" as const),
      payment: fc.nat(9),
      cents: fc.integer({ min: 1, max: 600 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("dispute" as const), payment: fc.nat(9), won: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("event" as const), which: fc.nat(99) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("crash" as const), instance: fc.nat(1) }) },
);
/** Batches are sequential; the operations inside one are concurrent. */
const history = fc.array(fc.array(act, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 6 });

describe("random histories of payments, runs, writes and crashes", () => {
  let double: StripeDouble;
  let stripe: Stripe;
  before(async () => {
    double = await startDouble();
    stripe = stripeClient(double);
  });
  after(() => double.stop());

  it("leave a balanced ledger and the expected balances", async function () {
    this.timeout(count(60_000, 1_200_000));
    const property = fc.asyncProperty(history, async (batches) => {
      const world = new CreditsHistory(double, stripe);
      await world.open();
      for (const batch of batches) await Promise.all(batch.map((one) => world.perform(one)));
      await world.finish();
      await world.check();
    });
    await fc.assert(property, { seed: SEED, numRuns: count(40, 2_000) });
  });
});
