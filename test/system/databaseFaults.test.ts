/** The same faults between a relayer and a real PostgreSQL: connections are cut at each statement, before it is carried out and after, and again at random. */
import { expect } from "chai";
import { ACT_KINDS, actThroughFaults, actor, expectExactly, insist, type Done } from "../support/acts";
import { ChainBed } from "../support/chainBed";
import { SEED, count, seeded } from "../support/counts";
import { startPostgres, type TestPostgres } from "../support/postgres";
import { startRelayerBed, type RelayerBed } from "../support/relayerBed";
import { PostgresProxy } from "../support/statementFaults";

const MOST_STATEMENTS = 60;

describe("connections to PostgreSQL that break", function () {
  this.timeout(count(180_000, 3_600_000));
  let postgres: TestPostgres;
  let proxy: PostgresProxy;
  let bed: ChainBed;
  let relayer: RelayerBed;

  before(async () => {
    postgres = await startPostgres();
    proxy = await PostgresProxy.start(await postgres.database("faults"));
    bed = await ChainBed.start();
    relayer = await startRelayerBed({ chain: bed, store: { databaseUrl: proxy.url } });
  });
  after(async () => {
    await relayer?.stop();
    await bed?.stop();
    await proxy?.stop();
    await postgres?.stop();
  });

  for (const kind of ACT_KINDS) {
    it(`at any one statement of ${kind} double nothing and lose nothing`, async () => {
      const api = await actor(relayer);
      const acts: Done[] = [];
      for (const side of ["before", "after"] as const) {
        for (let nth = 1, hit = true; hit && nth < MOST_STATEMENTS; nth++) {
          proxy.faults.arm(nth, side);
          acts.push(await insist(api, kind));
          hit = proxy.faults.wasHit;
          proxy.faults.disarm();
        }
      }
      expect(acts.length).to.be.greaterThan(8);
      await expectExactly(relayer, api, acts);
    });
  }

  it("at random, with many clients, double nothing and lose nothing", async () => {
    const { longestWaitMs } = await actThroughFaults(relayer, { faults: proxy.faults, clients: 12, hits: count(100, 10_000), random: seeded(SEED) });
    expect(longestWaitMs).to.be.below(10_000);
  });
});
