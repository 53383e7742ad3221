import { expect } from "chai";
import fc from "fast-check";
import { FairQueue } from "../../../executor/sandbox/fairQueue";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { PoolClosed, QueueFull, RunCancelled, type SandboxPool } from "../../../executor/sandbox/types";
import { RUN_LIMITS } from "../../../protocol/limits";
import { count, SEED } from "../../support/counts";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

describe("the fair queue", () => {
  it("keeps its invariants through random histories of arrivals, completions and cancellations", () => {
    const step = fc.record({
      kind: fc.constantFrom("add", "add", "take", "done", "remove"),
      account: fc.constantFrom("a", "b", "c"),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 12 }),
        fc.array(step, { maxLength: 200 }),
        (slots, capacity, steps) => {
          const queue = new FairQueue<{ account: string; id: number }>({ slots, capacity });
          const waiting: { account: string; id: number }[] = [];
          const running: { account: string; id: number }[] = [];
          const of = (list: { account: string }[], account: string) =>
            list.filter((item) => item.account === account).length;
          const act: Record<string, (account: string, id: number) => void> = {
            add(account, id) {
              const isFull =
                waiting.length >= capacity || of(waiting, account) >= Math.max(1, Math.floor(capacity / 2));
              const item = { account, id };
              if (isFull) expect(() => queue.add(account, item)).to.throw(QueueFull);
              else (queue.add(account, item), waiting.push(item));
            },
            take() {
              const item = queue.take();
              const share = (account: string) =>
                Math.max(1, Math.floor((slots - (running.length - of(running, account))) / 2));
              const mayRun = waiting.filter(
                ({ account }) => running.length < slots && of(running, account) < share(account),
              );
              if (!item) return expect(mayRun).to.deep.equal([]);
              expect(
                mayRun.find(({ account }) => account === item.account),
                "its account's oldest",
              ).to.equal(item);
              waiting.splice(waiting.indexOf(item), 1);
              running.push(item);
            },
            done(account) {
              const at = running.findIndex((item) => item.account === account);
              if (at !== -1) (running.splice(at, 1), queue.done(account, 10));
            },
            remove(account) {
              const item = waiting.find((other) => other.account === account);
              if (item) (waiting.splice(waiting.indexOf(item), 1), expect(queue.remove(account, item)).to.equal(true));
              else expect(queue.remove(account, { account, id: -1 })).to.equal(false);
            },
          };
          steps.forEach(({ kind, account }, id) => {
            act[kind]?.(account, id);
            expect([queue.waiting, queue.running]).to.deep.equal([waiting.length, running.length]);
          });
        },
      ),
      { seed: SEED, numRuns: count(200, 5_000) },
    );
  });

  it("serves accounts in turn, so that a flood delays another account by at most one run", () => {
    const queue = new FairQueue<string>({ slots: 2, capacity: 100 });
    for (let i = 0; i < 40; i++) queue.add("flood", `flood${i}`);
    expect(queue.take()).to.equal("flood0");
    queue.add("quiet", "quiet0");
    expect(queue.take(), "the second slot is not the flood's").to.equal("quiet0");
  });

  for (const slots of [4, 8, 64]) {
    it(
      `limits two accounts with endless load to less than ${slots} slots, whichever came first: a third ` +
        "starts at once",
      () => {
        const queue = new FairQueue<string>({ slots, capacity: 1_000 });
        for (let i = 0; i < 2 * slots; i++) for (const flood of ["one", "two"]) queue.add(flood, flood);
        const running: string[] = [];
        for (let item = queue.take(); item !== undefined; item = queue.take()) running.push(item);
        expect(running.length).to.be.below(slots);
        // One of them ends all of its runs, and the other takes what it can.
        for (const flood of running.filter((item) => item === "one")) queue.done(flood, 10);
        while (queue.take() !== undefined);
        queue.add("quiet", "quiet");
        expect(queue.take()).to.equal("quiet");
      },
    );
  }

  it("returns a retry delay between 1 and 60 seconds", () => {
    const queue = new FairQueue<number>({ slots: 1, capacity: 2 });
    queue.add("a", 1);
    expect(() => queue.add("a", 2))
      .to.throw(QueueFull)
      .with.property("retryAfterSeconds", 1);
  });
});

describe("a pool under load", function () {
  this.timeout(20_000);
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

  it("a flood gets QueueFull beyond its share, and another account still runs at once", async () => {
    const flood = Array.from({ length: 20 }, () => settled(pool.run(jobOf(sleeping(150), { account: "flood" }))));
    const startedAt = Date.now();
    await pool.run(jobOf(sleeping(1), { account: "quiet" }));
    expect(Date.now() - startedAt).to.be.below(500);
    const ends = await Promise.all(flood);
    expect(ends.filter((end) => end === "QueueFull")).to.have.lengthOf(20 - 1 - 4);
    expect(ends.filter((end) => end === "done")).to.have.lengthOf(5);
  });

  it("one account never holds more than half of the slots", async () => {
    let most = 0;
    const runs = Array.from({ length: 5 }, () =>
      pool.run(jobOf(sleeping(30), { account: "one", onStarted: () => (most = Math.max(most, pool.stats().busy)) })),
    );
    await Promise.all(runs);
    expect(most).to.equal(1);
  });

  it("a cancelled request leaves the queue, or ends its run and frees the slot", async () => {
    const inQueue = new AbortController();
    const inRun = new AbortController();
    const running = settled(
      pool.run(jobOf("for (;;);", { signal: inRun.signal, onStarted: () => setTimeout(() => inRun.abort(), 100) })),
    );
    const queued = settled(pool.run(jobOf(sleeping(1), { signal: inQueue.signal })));
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
