/**
 * No more runs start at once than there are cores, and one that computes on keeps nobody from starting. A child starts
 * with little code.
 */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { built } from "../../../executor/built";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

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

describe("the program of a child", () => {
  it("contains no library but the parser, since each is read and compiled at every start", () => {
    const program = readFileSync(built("sandbox/child.js"), "utf8");
    const libraries = [...program.matchAll(/^\/\/ node_modules\/([^/]+)/gm)].map(([, name]) => name);
    expect(new Set(libraries)).to.deep.equal(new Set(["acorn"]));
  });
});
