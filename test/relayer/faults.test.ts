/**
 * The store fails at each statement of an operation in turn, before and after it took effect: nothing is repeated,
 * nothing is lost, no client waits long.
 */
import { expect } from "chai";
import type { StripeDouble } from "../../scripts/dev/stripe/server";
import { count, ofSlice, seedOfSlice, seeded } from "../support/counts";
import {
  OPERATION_KINDS,
  performThroughFaults,
  newTestClient,
  expectExactly,
  failEachStatement,
  type OperationKind,
  type TestClient,
} from "../support/retriedOperations";
import { ChainBed } from "../support/chainBed";
import { paymentKeys, startDouble, stripeClient } from "../support/credits";
import { startRelayerBed, type RelayerBed } from "../support/relayerBed";
import { StatementFaults, failingPool } from "../support/statementFaults";

/** Kinds with the same statements as another kind: the quick tests run one of this many. */
const QUICK_EVERY: Partial<Record<OperationKind, number>> = {
  remove_group: 4,
  remove_usage_api_key: 4,
  add_action: 4,
  convert: 2,
};

describe("an operation whose store fails", function () {
  this.timeout(count(120_000, 3_600_000));
  const faults = new StatementFaults();
  let bed: ChainBed;
  let double: StripeDouble;
  let relayer: RelayerBed;

  before(async () => {
    bed = await ChainBed.start();
    double = await startDouble();
    relayer = await startRelayerBed({
      chain: bed,
      payments: paymentKeys(double),
      store: { around: (pool) => failingPool(pool, faults) },
    });
  });
  after(async () => {
    await relayer?.stop();
    await double?.stop();
    await bed?.stop();
  });
  const newClient = (): Promise<TestClient> => newTestClient(relayer, stripeClient(double));

  for (const kind of OPERATION_KINDS) {
    it(`at any one statement of ${kind} is done once and charged once, and its client gets the outcome`, async () => {
      const one = await newClient();
      await expectExactly(relayer, one, await failEachStatement(one, kind, faults, count(QUICK_EVERY[kind] ?? 1, 1)));
    });
  }

  it("a charged run is answered only once that is stored", async () => {
    const { id } = await newClient();
    const { reservationId } = await relayer.credits.reservations.reserveRun({ accountId: id, limitMs: 5_000 });
    faults.failRandomly(1, Math.random);
    let isAnswered = false;
    const settled = relayer.credits.reservations.settleRun(reservationId, 2_500).finally(() => (isAnswered = true));
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(isAnswered).to.equal(false);
    faults.disarm();
    expect(await settled).to.equal(3);
    expect((await relayer.credits.accounts.balance(id)).reservedCents).to.equal(0);
  });

  it("at random statements, beside others: ledger and chain agree in the end", async () => {
    const hits = ofSlice(count(40, 10_000));
    const { operations, longestWaitMs } = await performThroughFaults(relayer, newClient, {
      faults,
      clients: 6,
      hits,
      random: seeded(seedOfSlice()),
    });
    console.log(
      `      ${hits} faults, ${operations} operations, longest wait after the last fault ${longestWaitMs} ms`,
    );
    expect(longestWaitMs).to.be.below(10_000);
  });
});
