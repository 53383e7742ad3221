import { expect } from "chai";
import { count } from "../support/counts";
import { killAgainAndAgain } from "../support/killing";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";

describe("kill -9 of relayers' processes on one PostgreSQL", () => {
  let postgres: TestPostgres;
  before(async function () {
    this.timeout(60_000);
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  it("two at a time: no reported operation is lost or repeated, the ledger balances", async function () {
    this.timeout(count(240_000, 2_400_000));
    const databaseUrl = await postgres.database("killed");
    const { acts } = await killAgainAndAgain({ store: { databaseUrl }, kills: count(4, 80), processes: 2 });
    expect(acts).to.be.greaterThan(50);
  });

  it("also when the database is killed with them", async function () {
    this.timeout(count(240_000, 2_400_000));
    const databaseUrl = await postgres.database("crashed");
    const { acts } = await killAgainAndAgain({
      store: { databaseUrl },
      kills: count(3, 40),
      processes: 2,
      onKill: () => postgres.crash(),
    });
    expect(acts).to.be.greaterThan(50);
  });
});
