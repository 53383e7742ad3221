/**
 * The tests of test/relayer/chain/submissions/takeover.test.ts on a real PostgreSQL: row locks, unique indexes and lost
 * races as in production.
 */
import { ChainBed } from "../support/chainBed";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { describeTakeovers } from "../support/takeovers";

describe("relayers on one PostgreSQL", function () {
  this.timeout(120_000);
  let postgres: TestPostgres;
  before(async () => {
    postgres = await startPostgres();
  });

  describeTakeovers(async () => ChainBed.start({ payers: 2, databaseUrl: await postgres.database("chain") }));

  // After the tests' own clean-up, which still needs it.
  after(() => postgres?.stop());
});
