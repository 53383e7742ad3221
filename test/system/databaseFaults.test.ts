/**
 * The same faults between a relayer and a real PostgreSQL: connections are cut at each statement, before and after it
 * is executed, and again at random.
 */
import { expect } from "chai";
import type { StripeDouble } from "../../scripts/dev/stripe/server";
import {
  OPERATION_KINDS,
  performThroughFaults,
  newTestClient,
  expectExactly,
  failEachStatement,
  type TestClient,
} from "../support/retriedOperations";
import { ChainBed } from "../support/chainBed";
import { count, ofSlice, seedOfSlice, seeded } from "../support/counts";
import { paymentKeys, startDouble, stripeClient } from "../support/credits";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { startRelayerBed, type RelayerBed } from "../support/relayerBed";
import { PostgresProxy } from "../support/statementFaults";

/** The embedded store is tested at every statement each time; here only the deep tests do so. */
const EVERY = count(4, 1);

describe("broken connections to PostgreSQL", function () {
  this.timeout(count(180_000, 3_600_000));
  let postgres: TestPostgres;
  let proxy: PostgresProxy;
  let bed: ChainBed;
  let double: StripeDouble;
  let relayer: RelayerBed;

  before(async () => {
    postgres = await startPostgres();
    proxy = await PostgresProxy.start(await postgres.database("faults"));
    bed = await ChainBed.start();
    double = await startDouble();
    relayer = await startRelayerBed({ chain: bed, payments: paymentKeys(double), store: { databaseUrl: proxy.url } });
  });
  after(async () => {
    await relayer?.stop();
    await double?.stop();
    await bed?.stop();
    await proxy?.stop();
    await postgres?.stop();
  });
  const newClient = (): Promise<TestClient> => newTestClient(relayer, stripeClient(double));

  for (const kind of OPERATION_KINDS) {
    it(`at any one statement of ${kind} repeat nothing and lose nothing`, async () => {
      const one = await newClient();
      await expectExactly(relayer, one, await failEachStatement(one, kind, proxy.faults, EVERY));
    });
  }

  it("at random, with many clients, repeat nothing and lose nothing", async () => {
    const hits = ofSlice(count(100, 10_000));
    const { operations, longestWaitMs } = await performThroughFaults(relayer, newClient, {
      faults: proxy.faults,
      clients: 12,
      hits,
      random: seeded(seedOfSlice()),
    });
    console.log(
      `      ${hits} faults, ${operations} operations, longest wait after the last fault ${longestWaitMs} ms`,
    );
    expect(longestWaitMs).to.be.below(10_000);
  });
});
