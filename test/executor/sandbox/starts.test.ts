/** Starts: no more at once than cores, freed by the first thing a run waits for, never held for long. */
import { expect } from "chai";
import { Starts } from "../../../executor/sandbox/starts";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

const nothing = (): void => undefined;

describe("the starts of runs", () => {
  it("are as many at once as there are cores", () => {
    const starts = new Starts(2);
    starts.begin(nothing);
    expect(starts.isFree).to.equal(true);
    const end = starts.begin(nothing);
    expect(starts.isFree).to.equal(false);
    end();
    expect(starts.isFree).to.equal(true);
  });

  it("end once, however often that is said", () => {
    const starts = new Starts(1);
    let freed = 0;
    const end = starts.begin(() => (freed += 1));
    end();
    end();
    expect(freed).to.equal(1);
    starts.begin(nothing);
    end();
    expect(starts.isFree, "another's start is not ended").to.equal(false);
  });

  it("end by themselves when a run computes on", async () => {
    const starts = new Starts(1);
    await new Promise<void>((freed) => void starts.begin(freed));
    expect(starts.isFree).to.equal(true);
  });
});

describe("a pool whose cores all compute", function () {
  this.timeout(60_000);

  it("starts another account's run while they do", async () => {
    const pool = await createSandboxPool({ limits: RUN_LIMITS, size: 8, logger: silent, fetcher: noFetcher });
    try {
      const loop = "async function main() { while (true) {} }";
      const limits = { wallMs: 10_000 };
      let haveEnded = 0;
      const countEnd = (): void => void (haveEnded += 1);
      const looping = Array.from({ length: 4 }, () =>
        pool.run(jobOf(loop, { account: "busy", limits })).then(countEnd, countEnd),
      );
      const code = `async function main() { return "served"; }`;
      const others = await Promise.all(["one", "two", "three"].map((account) => pool.run(jobOf(code, { account }))));
      expect(others.map(({ response }) => response)).to.deep.equal(Array(3).fill('"served"'));
      expect(haveEnded).to.equal(0);
      await pool.close(0);
      await Promise.all(looping);
      expect(haveEnded).to.equal(4);
    } finally {
      await pool.close(0);
    }
  });
});
