import { expect } from "chai";
import type { Fetcher } from "../../../executor/fetcher/types";
import { OP_MEMORY_PER_CHAR, RunFetches, RunShares } from "../../../executor/sandbox/fetches";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { Tripwire } from "../../../executor/sandbox/tripwire";
import { MIB, RUN_LIMITS, SHARED_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, unmeasured, silent } from "../../support/sandbox";

const UPLOADS = `async function main() {
  const body = new Uint8Array(${5 * MIB});
  await Promise.all(Array.from({ length: 10 }, () => fetch("http://a.test/", { method: "POST", body })));
}`;
const DOWNLOADS = `async function main() {
  await Promise.all(Array.from({ length: 50 }, () => fetch("http://a.test/")));
}`;

/** The bytes in flight at once, and their maximum. */
class Gauge {
  now = 0;
  most = 0;
  add(amount: number): void {
    this.now += amount;
    this.most = Math.max(this.most, this.now);
  }
}

describe("attack: fetches with arguments of a megabyte", () => {
  it("of many accounts are parsed only as far as there is memory for them", async () => {
    const shares = new RunShares(RUN_LIMITS.fetchBytes);
    const chars = new Gauge();
    const fetcher: Fetcher = {
      ...noFetcher,
      fetchGuest: async ({ url }) => {
        chars.add(url.length);
        await new Promise((resolve) => setTimeout(resolve, 20));
        chars.add(-url.length);
        const response = { url: "", redirected: false, status: 200, statusText: "OK", headers: [] };
        return { response, body: Buffer.alloc(0) };
      },
    };
    const url = `http://a.test/${"x".repeat(MIB - 200)}`;
    const request = JSON.stringify({ url, method: "GET", redirect: "follow", headers: [] });
    let served = 0;
    const fetches = Array.from({ length: 64 }, (_, i) => {
      const job = jobOf("", { account: `account ${i}` });
      const run = new RunFetches(
        i,
        job,
        { fetcher, shares, time: unmeasured },
        new Tripwire(),
        new AbortController().signal,
      );
      return run.serve(request, Buffer.alloc(0), async ({ ok }) => void (served += ok ? 1 : 0));
    });
    await Promise.all(fetches);
    expect([served, chars.now, shares.bodies.taken]).to.deep.equal([64, 0, 0]);
    expect(chars.most).to.be.within(1, SHARED_LIMITS.fetchBodyBytes / OP_MEMORY_PER_CHAR);
  });
});

describe("attack: bodies of hundreds of megabytes", function () {
  this.timeout(60_000);

  it("bodies in flight fit the memory there is for them, and one account leaves room for another", async () => {
    const bodies = new Gauge();
    const answers = new Gauge();
    const open = new Gauge();
    const fetcher: Fetcher = {
      ...noFetcher,
      fetchGuest: async ({ url }, body, { grow } = {}) => {
        open.add(1);
        bodies.add(body.length);
        if (body.length === 0) {
          await grow?.();
          answers.add(RUN_LIMITS.fetchBytes);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
        open.add(-1);
        bodies.add(-body.length);
        if (body.length === 0) answers.add(-RUN_LIMITS.fetchBytes);
        return {
          response: { url, redirected: false, status: 200, statusText: "OK", headers: [] },
          body: Buffer.alloc(0),
        };
      },
    };
    const pool = await createSandboxPool({ limits: RUN_LIMITS, size: 4, logger: silent, fetcher });
    try {
      const runs = [UPLOADS, UPLOADS, DOWNLOADS, DOWNLOADS].map((code) =>
        pool.run(jobOf(code, { limits: { wallMs: 40_000 } })),
      );
      for (const { error } of await Promise.all(runs)) expect(error, JSON.stringify(error)).to.equal(undefined);
    } finally {
      await pool.close(0);
    }
    expect(bodies.most).to.be.within(1, SHARED_LIMITS.fetchBodyBytes - RUN_LIMITS.fetchBytes);
    expect(answers.most).to.be.within(1, SHARED_LIMITS.fetchAnswerBytes - RUN_LIMITS.fetchBytes);
    expect(open.most).to.be.within(1, SHARED_LIMITS.fetchesUnderWay - 1);
    expect([bodies.now, answers.now, open.now]).to.deep.equal([0, 0, 0]);
  });
});
