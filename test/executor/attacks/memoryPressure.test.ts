import { expect } from "chai";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { MIB, RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

const GREEDY = `async function main() {
  const kept = [];
  for (let i = 0; i < 100; i++) kept.push(new Uint8Array(${MIB}).fill(i));
  await new Promise((resolve) => setTimeout(resolve, 25_000));
  return kept.length;
}`;
const MODEST = `async function main() { await new Promise((resolve) => setTimeout(resolve, 3_000)); return "modest"; }`;

describe("attack: runs that together use more memory than available", function () {
  this.timeout(60_000);

  it("the greedy run is ended, a run within its share is not", async () => {
    const stop = new AbortController();
    const pool = await createSandboxPool({
      limits: RUN_LIMITS,
      size: 4,
      logger: silent,
      fetcher: noFetcher,
      memoryBytes: 350 * MIB,
    });
    try {
      const { signal } = stop;
      const run = (code: string, account: string) => pool.run(jobOf(code, { account, key: account, signal }));
      const greedy = ["a", "b", "c"].map((account) => run(GREEDY, account));
      const [modest, { error, fault }] = await Promise.all([run(MODEST, "honest"), Promise.race(greedy)]);
      expect(modest.response, JSON.stringify(modest)).to.equal('"modest"');
      expect([error?.code, fault]).to.deep.equal(["out_of_memory", undefined]);
      stop.abort();
      const ends = await Promise.allSettled(greedy);
      const others = ends.map((end) =>
        end.status === "fulfilled" ? end.value.error?.code : (end.reason as Error).name,
      );
      expect(others.filter((end) => end !== "out_of_memory" && end !== "RunCancelled")).to.deep.equal([]);
    } finally {
      await pool.close(0);
    }
  });
});
