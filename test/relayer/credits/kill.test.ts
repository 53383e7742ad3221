import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { prepareDatabase } from "../../../scripts/dev/embeddedDatabase";
import { count } from "../../support/counts";
import { killAgainAndAgain } from "../../support/killing";

describe("kill -9 of a process that uses the embedded ledger", () => {
  it("loses no reported operation, repeats none and leaves a balanced ledger", async function () {
    this.timeout(count(120_000, 1_800_000));
    const dataDir = await mkdtemp(join(tmpdir(), "ledger-"));
    await prepareDatabase(join(dataDir, "pglite"));
    const { acts } = await killAgainAndAgain({ store: { dataDir }, kills: count(2, 60), processes: 1 });
    expect(acts).to.be.greaterThan(10);
    await rm(dataDir, { recursive: true, force: true });
  });
});
