import { expect } from "chai";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { PoolClosed, RunCancelled, type SandboxPool } from "../../../executor/sandbox/types";
import { MIB, RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent } from "../../support/sandbox";
import { expectInTime, itInTime } from "../../support/inTime";

describe("a pool under load", function () {
  this.timeout(60_000);
  let pool: SandboxPool;
  beforeEach(async () => {
    pool = await createSandboxPool({
      limits: RUN_LIMITS,
      size: 2,
      queueCapacity: 8,
      logger: silent,
      fetcher: noFetcher,
    });
  });
  afterEach(() => pool.close(0));

  const sleeping = (ms: number) =>
    `async function main() { await new Promise((resolve) => setTimeout(resolve, ${ms})); }`;
  const settled = (promise: Promise<unknown>) =>
    promise.then(
      () => "done",
      (error: Error) => error.name,
    );

  const LOOP = "async function main() { for (;;); }";
  const LOOP_FOR_A_WHILE = "async function main() { for (const end = Date.now() + 300; Date.now() < end; ); }";
  const timed = async (work: Promise<unknown>): Promise<number> => {
    const startedAt = performance.now();
    await work;
    return performance.now() - startedAt;
  };

  itInTime("a flood is refused beyond the queue, and another account still runs at once", async () => {
    const flood = Array.from({ length: 20 }, () => settled(pool.run(jobOf(sleeping(150), { account: "flood" }))));
    expectInTime(await timed(pool.run(jobOf(sleeping(1), { account: "quiet" }))), 500);
    const ends = await Promise.all(flood);
    expect(ends.filter((end) => end === "Crowded")).to.have.lengthOf.at.least(20 - 3 - 8);
    expect(ends.filter((end) => end === "done")).to.have.lengthOf.at.least(8);
  });

  it("an account's own run begins before its triggers' firings that wait", async () => {
    const begun: string[] = [];
    const run = (name: string, share?: string) =>
      pool.run(
        jobOf(LOOP_FOR_A_WHILE, { account: "a", ...(share && { share }), onStarted: () => void begun.push(name) }),
      );
    const firings = ["1", "2", "3", "4", "5"].map((name) => run(name, "a triggers"));
    while (begun.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await run("own");
    expect(begun.indexOf("own"), begun.join()).to.be.at.most(2);
    await Promise.all(firings);
    expect(begun).to.have.length(6);
  });

  it("two accounts with a hundred runs each refuse no one else, and wait longest", async () => {
    const flood = ["one", "two"].flatMap((account) =>
      Array.from({ length: 100 }, () => settled(pool.run(jobOf(sleeping(3_000), { account })))),
    );
    for (let i = 0; i < 10; i++)
      expect((await pool.run(jobOf(`async function main() { return ${i}; }`, { account: "quiet" }))).response).to.equal(
        String(i),
      );
    await pool.close(0);
    await Promise.all(flood);
  });

  it("runs that sleep leave their places to runs that compute", async () => {
    let started = 0;
    let ended = 0;
    const run = (account: string, ms: number) =>
      pool.run(jobOf(sleeping(ms), { account, onStarted: () => started++ })).finally(() => ended++);
    const sleepers = ["a", "b", "c"].map((account) => run(account, 9_000));
    while (started < 3) await new Promise((resolve) => setTimeout(resolve, 20));
    await run("d", 1);
    expect(ended, "those that sleep still do").to.equal(1);
    for (const { error } of await Promise.all(sleepers)) expect(error).to.equal(undefined);
  });

  it("a run that others have waited a second for is ended, and pays for its time", async () => {
    let started = 0;
    const looping = ["a", "b"].map((account) => pool.run(jobOf(LOOP, { account, onStarted: () => started++ })));
    while (started < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    const quiet = pool.run(jobOf("async function main() { return 1; }", { account: "quiet" }));
    expect(await timed(quiet)).to.be.within(900, 8_000);
    expect((await quiet).response).to.equal("1");
    const ended = await Promise.race(looping);
    expect(ended.error?.code).to.equal("preempted");
    expect(ended.fault).to.equal(undefined);
    // Without what it waited for a core.
    expect(ended.durationMs).to.be.above(50);
    await pool.close(0);
  });

  it("so is one whose client has left, or that may not go on for another reason, once it has begun", async () => {
    const left = new AbortController();
    let started = 0;
    const onStarted = (): unknown => started++;
    const looping = ["a", "b"].map((account) =>
      pool.run({ ...jobOf(LOOP, { account, onStarted }), left: left.signal }),
    );
    while (started < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    left.abort();
    const quiet = await Promise.all(
      ["c", "d"].map((account) => pool.run(jobOf("async function main() { return 1; }", { account }))),
    );
    expect(quiet.map(({ response }) => response)).to.deep.equal(["1", "1"]);
    const ended = await Promise.race(looping);
    expect(ended.error?.code).to.equal("preempted");
    await pool.close(0);
  });

  itInTime("loops of many accounts that wait for a place keep no memory from short runs", async () => {
    const few = await createSandboxPool({
      ...{ limits: RUN_LIMITS, logger: silent, fetcher: noFetcher },
      ...{ size: 4, maxChildren: 20, memoryBytes: 1_600 * MIB },
    });
    const hello = () => few.run(jobOf("async function main() { return 1; }", { account: "quiet" }));
    for (let i = 0; i < 5; i++) await hello();
    const loops = Array.from({ length: 24 }, (_, i) => settled(few.run(jobOf(LOOP, { account: `loop ${i}` }))));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const waits: number[] = [];
    for (let i = 0; i < 5; i++) waits.push(await timed(hello()));
    await few.close(0);
    await Promise.all(loops);
    expectInTime(waits.sort((a, b) => a - b)[2], 1_000);
  });

  it("runs that wait until their child has started keep no place from one whose child is warm", async () => {
    const parts = { limits: RUN_LIMITS, logger: silent, fetcher: noFetcher };
    const many = await createSandboxPool({ ...parts, size: 2, maxChildren: 12, memoryBytes: 8_192 * MIB });
    const hello = () => many.run(jobOf("async function main() { return 1; }", { account: "quiet" }));
    await hello();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    // Children are ready for two of them.
    let started = 0;
    const newcomers = Array.from({ length: 6 }, (_, i) =>
      many.run(jobOf(sleeping(1), { account: `newcomer ${i}`, onStarted: () => started++ })),
    );
    while (started < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, 30));
    await hello();
    expect(started).to.equal(2);
    await Promise.all(newcomers);
    await many.close(0);
  });

  it("a cancelled request leaves the queue, or ends its run and frees the slot", async () => {
    const inQueue = new AbortController();
    const inRun = new AbortController();
    const running = settled(
      pool.run(jobOf("for (;;);", { signal: inRun.signal, onStarted: () => setTimeout(() => inRun.abort(), 100) })),
    );
    const queued = settled(pool.run(jobOf(sleeping(1), { signal: inQueue.signal })));
    await new Promise(setImmediate);
    expect(pool.stats().queued).to.equal(1);
    inQueue.abort();
    expect(await queued).to.equal("RunCancelled");
    expect(pool.stats().queued).to.equal(0);
    expect(await running).to.equal("RunCancelled");
    expect((await pool.run(jobOf("async function main() { return 1; }"))).response).to.equal("1");
    expect(pool.stats().busy).to.equal(0);
  });

  it("an already aborted signal runs nothing", async () => {
    let started = false;
    const error = await pool
      .run(jobOf("1", { signal: AbortSignal.abort(), onStarted: () => (started = true) }))
      .catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(RunCancelled);
    expect(started).to.equal(false);
  });

  it("closing takes no new runs, drains the open ones, and leaves no process behind", async () => {
    const runs = Array.from({ length: 3 }, () => settled(pool.run(jobOf(sleeping(100)))));
    const closing = pool.close();
    expect(await pool.run(jobOf("1")).catch((error: unknown) => error)).to.be.instanceOf(PoolClosed);
    await closing;
    expect(await Promise.all(runs)).to.deep.equal(["done", "done", "done"]);
    expect(pool.stats().children).to.equal(0);
  });

  it("closing without time to drain ends runs as a service fault and refuses queued ones", async () => {
    const running = pool.run(jobOf("for (;;);"));
    const queued = settled(pool.run(jobOf(sleeping(1))));
    await new Promise((resolve) => setTimeout(resolve, 200));
    await pool.close(50);
    expect(await queued).to.equal("PoolClosed");
    expect(await running).to.include({ fault: "service" });
  });
});
