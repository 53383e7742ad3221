/**
 * Several relayers on one store, one of them paused at every step. The same on a real PostgreSQL:
 * test/system/chain.test.ts.
 */
import { ChainBed } from "../../../support/chainBed";
import { describeTakeovers } from "../../../support/takeovers";

describe("relayers on one store", function () {
  this.timeout(60_000);
  describeTakeovers(() => ChainBed.start({ payers: 1 }));
});
