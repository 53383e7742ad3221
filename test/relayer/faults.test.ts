/** The store fails at each statement of an act in turn, before it took effect and after: nothing is doubled, nothing is lost, nobody waits long. */
import { expect } from "chai";
import { SEED, count, seeded } from "../support/counts";
import { ACT_KINDS, actThroughFaults, actor, expectExactly, insist, type Done } from "../support/acts";
import { ChainBed } from "../support/chainBed";
import type { Api } from "../support/http";
import { startRelayerBed, type RelayerBed } from "../support/relayerBed";
import { StatementFaults, failingPool } from "../support/statementFaults";

/** No act takes as many statements, its background included. */
const MOST_STATEMENTS = 60;

describe("an act whose store fails", function () {
  this.timeout(count(120_000, 3_600_000));
  const faults = new StatementFaults();
  let bed: ChainBed;
  let relayer: RelayerBed;
  let api: Api;

  before(async () => {
    bed = await ChainBed.start();
    relayer = await startRelayerBed({ chain: bed, store: { around: (pool) => failingPool(pool, faults) } });
    api = await actor(relayer);
  });
  after(async () => {
    await relayer?.stop();
    await bed?.stop();
  });

  for (const kind of ACT_KINDS) {
    it(`at any one statement of ${kind} is done once and paid once, and its client gets the outcome`, async () => {
      api = await actor(relayer);
      const acts: Done[] = [];
      for (const side of ["before", "after"] as const) {
        for (let nth = 1, hit = true; hit && nth < MOST_STATEMENTS; nth++) {
          faults.arm(nth, side);
          acts.push(await insist(api, kind));
          hit = faults.wasHit;
          faults.disarm();
        }
      }
      expect(acts.length, "every statement failed twice").to.be.greaterThan(8);
      await expectExactly(relayer, api, acts);
    });
  }

  it("and others beside it, at random: the books and the chain agree in the end", async () => {
    const { longestWaitMs } = await actThroughFaults(relayer, { faults, clients: 6, hits: count(40, 10_000), random: seeded(SEED) });
    expect(longestWaitMs).to.be.below(10_000);
  });
});
