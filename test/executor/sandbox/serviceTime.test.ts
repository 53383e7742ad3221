/** What a run waits for the service is not billed; what it computes, and what it waits for others, is. */
import { expect } from "chai";
import { createHash } from "node:crypto";
import type { Fetcher } from "../../../executor/fetcher/types";
import { RunFetches, RunShares } from "../../../executor/sandbox/fetches";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { ServiceTime } from "../../../executor/sandbox/serviceTime";
import { Tripwire } from "../../../executor/sandbox/tripwire";
import { AWAKE_MS } from "../../../executor/awake";
import type { OpAnswer } from "../../../executor/sandbox/types";
import { inScope } from "../../../protocol/fairShare";
import { RUN_LIMITS, SHARED_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, run, silent } from "../../support/sandbox";
import { expectInTime, itInTime } from "../../support/inTime";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("the time that a run is billed for", function () {
  this.timeout(60_000);

  const OP = `Actions.signMessage({ pkpId: "0x1", message: "m" })`;
  /** The same for every processor time. */
  const WORK = "let n = 0; for (let i = 0; i < 2e7; i++) n = (n * 31 + i) | 0;";
  const MODULE = "export default 1;";
  const slowOps = async (): Promise<OpAnswer> => (await pause(1_500), { ok: true, value: JSON.stringify("0x") });

  itInTime("is without what it waits for ops, however many at once", async () => {
    const code = `async function main() { await Promise.all([${OP}, ${OP}]); await ${OP}; }`;
    const { durationMs, error } = await run(code, { ops: slowOps });
    expect(error).to.equal(undefined);
    expectInTime(durationMs, 1_000);
  });

  itInTime(
    "is without what its imports wait for its permission, and with what they wait for their source",
    async () => {
      const wayMs = 700;
      const fetcher: Fetcher = {
        ...noFetcher,
        fetchModule: async () => (await pause(wayMs), Buffer.from(MODULE)),
      };
      const pool = await createSandboxPool({ limits: RUN_LIMITS, size: 1, logger: silent, fetcher });
      const specifier = `lib@1.0.0#sha384-${createHash("sha384").update(MODULE).digest("base64")}`;
      const code = `import "${specifier}";\nasync function main() { return "imported"; }`;
      try {
        const { response, durationMs } = await pool.run({ ...jobOf(code), permitted: () => pause(1_500) });
        expect(response).to.equal(JSON.stringify("imported"));
        expect(durationMs).to.be.at.least(wayMs - 10);
        expectInTime(durationMs, 1_400);
      } finally {
        await pool.close(0);
      }
    },
  );

  it("is with what it computes while its ops are served", async () => {
    const code = `async function main() { const op = ${OP}; ${WORK} await op; return n; }`;
    const alone = await run(`async function main() { ${WORK} return n; }`);
    const { durationMs } = await run(code, { ops: slowOps });
    expect(durationMs).to.be.within(alone.durationMs / 3, alone.durationMs + 1_000);
  });

  it("is with what a module computes before its first await, while an op of it is served", async () => {
    const code = `const op = ${OP}; ${WORK} export default async () => (await op, n);`;
    const alone = await run(`${WORK} export default async () => n;`);
    const { durationMs, error } = await run(code, { ops: slowOps });
    expect(error).to.equal(undefined);
    expect(durationMs).to.be.within(alone.durationMs / 3, alone.durationMs + 1_000);
  });

  it("is with what it sleeps, also while an op has been served", async () => {
    const code = `async function main() { await ${OP}; await new Promise((resolve) => setTimeout(resolve, 700)); }`;
    const { durationMs } = await run(code, { ops: slowOps });
    expect(durationMs).to.be.within(690, 1_900);
  });

  itInTime("is the same however many runs share the cores", async () => {
    const AT_ONCE = 8;
    // Some places are kept for others, and nobody may wait for one.
    const pool = await createSandboxPool({ limits: RUN_LIMITS, size: AT_ONCE * 2, logger: silent, fetcher: noFetcher });
    const work = (account: string) =>
      pool.run(jobOf(`async function main() { ${WORK} return n; }`, { account, limits: RUN_LIMITS }));
    try {
      await work("first");
      const startedAt = performance.now();
      const alone = await work("first");
      const aloneMs = performance.now() - startedAt;
      const crowdAt = performance.now();
      const crowd = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => work(`account ${i}`)));
      const crowdMs = performance.now() - crowdAt;
      const billed = crowd.reduce((sum, { durationMs }) => sum + durationMs, 0) / AT_ONCE;
      const errors = crowd.flatMap(({ error }) => (error === undefined ? [] : [error.code]));
      expect(errors).to.deep.equal([]);
      // On a machine with cores enough for all of them nobody waits, and both sides are about 1.
      expectInTime(billed / alone.durationMs, Math.max(1.8, crowdMs / aloneMs / 1.5));
    } finally {
      await pool.close(0);
    }
  });

  itInTime("is without the time for which a child stays awake for an answer, but with what it computes", async () => {
    let ranMs = 0;
    const time = new ServiceTime(() => ({ ranMs, waitedMs: 0 }));
    const wait = async (computedMs: number): Promise<number> => {
      const [before, startedAt, onServed] = [time.total(), performance.now(), time.begin()];
      await pause(20);
      ranMs += computedMs;
      onServed();
      return performance.now() - startedAt - (time.total() - before);
    };
    // Between the clocks' readings a busy machine may do something else.
    for (const beyondMs of [0, 10]) {
      const billed = await wait(beyondMs + AWAKE_MS);
      expect(billed).to.be.at.least(beyondMs - 0.1);
      expectInTime(billed, beyondMs + 0.2);
    }
  });

  itInTime("is with what it waits for the outside, whatever else it waits for", async () => {
    const time = new ServiceTime(() => ({ ranMs: 0, waitedMs: 0 }));
    const onServed = time.begin();
    await pause(20);
    const [back, alsoBack] = [time.outside(), time.outside()];
    const before = time.total();
    expect(before).to.be.at.least(19);
    back();
    await pause(200);
    // What begins and ends meanwhile changes nothing.
    time.begin()();
    expect(time.total()).to.equal(before);
    alsoBack();
    alsoBack();
    await pause(20);
    onServed();
    expect(time.total()).to.be.at.least(before + 19);
    expectInTime(time.total(), before + 150);
  });

  const sharesOfFetches = {
    places: { of: ({ open }: RunShares) => open, most: SHARED_LIMITS.fetchesUnderWay, body: Buffer.alloc(0) },
    "memory for bodies": {
      of: ({ bodies }: RunShares) => bodies,
      most: SHARED_LIMITS.fetchBodyBytes,
      body: Buffer.alloc(RUN_LIMITS.fetchBytes),
    },
    "memory for answers": {
      of: ({ answers }: RunShares) => answers,
      most: SHARED_LIMITS.fetchAnswerBytes,
      body: Buffer.alloc(0),
    },
  };
  type ShareOfFetches = (typeof sharesOfFetches)[keyof typeof sharesOfFetches];

  /** While an account holds so much of what fetches share, a fetch waits for half a second. In milliseconds. */
  async function unbilledBeside(
    account: string,
    { of, body }: ShareOfFetches,
    amounts: number[],
    { wayMs = 0, isOpServed = false } = {},
  ): Promise<number> {
    const shares = new RunShares(RUN_LIMITS.fetchBytes);
    const time = new ServiceTime(() => ({ ranMs: 0, waitedMs: 0 }));
    const fetcher = {
      ...noFetcher,
      fetchGuest: async (_request: unknown, _body: unknown, { grow }: { grow(): Promise<void> }) => {
        await pause(wayMs);
        await grow();
        return Promise.reject(new Error("not reached"));
      },
    };
    const over = new AbortController();
    const run = new RunFetches(1, jobOf(""), { fetcher, shares, time }, new Tripwire(), over.signal);
    const request = JSON.stringify({ url: "http://a.test/", method: "GET", redirect: "follow", headers: [] });
    const onServed = isOpServed ? time.begin() : undefined;
    let fetched: Promise<unknown> = Promise.resolve();
    await inScope(account, undefined, async (scope) => {
      for (const amount of amounts) await scope.take(of(shares), amount);
      fetched = run.serve(request, body, async () => undefined).catch(() => undefined);
      await pause(500);
    });
    await fetched;
    onServed?.();
    return time.total();
  }

  itInTime("is with a fetch's way while an op is served, without its wait for room that others hold", async () => {
    const { "memory for answers": answers } = sharesOfFetches;
    const options = { wayMs: 300, isOpServed: true };
    const unbilled = await unbilledBeside("another", answers, [answers.most], options);
    expect(unbilled).to.be.at.least(100);
    expectInTime(unbilled, 400);
  });

  for (const [name, share] of Object.entries(sharesOfFetches)) {
    itInTime(`is without what a fetch waits for ${name} that others hold`, async () => {
      const unbilled = await unbilledBeside("another", share, [share.most]);
      expect(unbilled).to.be.at.least(490);
      expectInTime(unbilled, 650);
    });

    it(`is with what a fetch waits for ${name} that its own account holds`, async () => {
      const each = share.most > 1_000 ? RUN_LIMITS.fetchBytes : 1;
      // As many as an account gets alone: some are kept free for others.
      const amounts = Array.from({ length: Math.floor((share.most * 3) / 4 / each) }, () => each);
      expect(await unbilledBeside(jobOf("").account, share, amounts)).to.be.below(50);
    });
  }
});
