import { expect } from "chai";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { DEFAULT_FIRST_UID } from "../../../executor/sandbox/launch";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import type { Fetcher } from "../../../executor/fetcher/types";
import type { SandboxPool } from "../../../executor/sandbox/types";
import { Worker } from "../../../executor/sandbox/worker";
import { Starter } from "../../../executor/confinement/starter";
import { MIB, RUN_LIMITS } from "../../../protocol/limits";
import { childrenOf, factsOf } from "../../support/children";
import { count } from "../../support/counts";
import { jobOf, noFetcher, silent, type RunOptions } from "../../support/sandbox";

const MARKER = "sandbox/child.js";

describe("the lifecycle of children", function () {
  this.timeout(60_000);
  let pool: SandboxPool;
  let others: Set<number>;
  const own = () => childrenOf(process.pid, MARKER).filter(({ pid }) => !others.has(pid));
  const start = async (options: object = {}) => {
    others = new Set(childrenOf(process.pid, MARKER).map(({ pid }) => pid));
    pool = await createSandboxPool({ limits: RUN_LIMITS, size: 2, logger: silent, fetcher: noFetcher, ...options });
  };
  afterEach(() => pool.close(0));
  const here = (options?: RunOptions, code = "async function main() { return 1; }") => pool.run(jobOf(code, options));
  /** The process ids before and after a run: which child served it, if one was started for it. */
  const pids = async () => {
    // A starting child is still its wrapper process.
    while (own().length !== pool.stats().children) await new Promise((resolve) => setTimeout(resolve, 20));
    return own().map(({ pid }) => pid);
  };
  /** Those, once no child is about to be replaced by an unused one. */
  const settledPids = async (): Promise<number[]> => {
    const seen = await pids();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await pids();
    return now.join() === seen.join() ? now : settledPids();
  };

  it("a warm child serves the same key and code again, and no other", async () => {
    await start();
    await here({ key: "a" });
    const warm = await pids();
    for (let i = 0; i < 5; i++) await here({ key: "a" });
    expect(await pids(), "no fork for a warm key").to.deep.equal(warm);
    await here({ key: "b" });
    expect((await pids()).length, "another key took a fresh child").to.equal(warm.length + 1);
    await here({ key: "a", cid: "QmOther" });
    expect((await pids()).length, "other code of the same key did, too").to.equal(warm.length + 2);
  });

  it("is replaced after its number of runs", async () => {
    await start({ recycle: { runs: 3, ageMs: 60_000 } });
    const seen = new Set<number>();
    for (let i = 0; i < 9; i++) {
      expect((await here()).response).to.equal("1");
      for (const pid of await pids()) seen.add(pid);
    }
    expect(seen.size).to.be.at.least(4);
  });

  it("is ended at its maximum age", async () => {
    await start({ recycle: { runs: 500, ageMs: 1 } });
    await here();
    const first = await pids();
    await here();
    expect(await pids()).to.not.deep.equal(first);
  });

  it("is not reused after a run that left a large answer unread, and is after one that read it", async () => {
    const fetchGuest: Fetcher["fetchGuest"] = ({ url }) =>
      Promise.resolve({
        response: { url, redirected: false, status: 200, statusText: "OK", headers: [] },
        body: Buffer.alloc(4 * MIB),
      });
    await start({ fetcher: { ...noFetcher, fetchGuest } });
    const read = "async function main() { await (await fetch('https://a/')).arrayBuffer(); return 1; }";
    const leave = `function main() {
      fetch("https://a/");
      for (const until = Date.now() + 500; Date.now() < until;);
      return 1;
    }`;
    for (const [key, code, isReused] of [
      ["reads", read, true],
      ["leaves", leave, false],
    ] as const) {
      expect((await here({ key }, code)).response).to.equal("1");
      const before = await settledPids();
      expect((await here({ key }, "async function main() { return 1; }")).response).to.equal("1");
      const after = await settledPids();
      expect(
        after.every((pid) => before.includes(pid)),
        key,
      ).to.equal(isReused);
    }
  });

  it("is not reused after anything abnormal", async () => {
    await start();
    await here();
    const before = await pids();
    await here({ limits: { wallMs: 100 } }, "for (;;);");
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect((await pids()).filter((pid) => before.includes(pid)).length).to.be.below(before.length);
  });

  it("is gone at once when it is ended during its start, at any moment", async () => {
    await start();
    const starter = new Starter();
    const starts = count(40, 400);
    for (let i = 0; i < starts; i++) {
      const child = new Worker({ heapMiB: RUN_LIMITS.heapMiB, uid: DEFAULT_FIRST_UID + 90 }, starter, silent);
      child.ready().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, i % 20));
      child.kill("the test ends it");
      const end = await Promise.race([child.exited.then(() => "exited"), new Promise((r) => setTimeout(r, 5_000))]);
      expect(end, `ended ${i % 20} ms after its start`).to.equal("exited");
    }
    starter.close();
  });

  it("many keys never cause more children than the pool's maximum", async () => {
    await start({ maxChildren: 5 });
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, pool.stats().children)), 1);
    for (let i = 0; i < 10; i++) {
      await here({ key: `key${i}` });
      most = Math.max(most, pool.stats().children);
    }
    clearInterval(watch);
    expect(most).to.equal(5);
  });

  it("nor do many runs of one key and code at once", async () => {
    await start({ maxChildren: 10 });
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, pool.stats().children)), 10);
    const caller = async () => {
      for (let i = 0; i < 10; i++) await here();
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    clearInterval(timer);
    expect(most).to.be.within(1, 10);
  });

  it("a child that is used again and again stays warm while many keys run once", async () => {
    await start({ maxChildren: 5 });
    for (let i = 0; i < 2; i++) await here({ key: "regular" });
    for (let i = 0; i < 8; i++) await here({ key: `once${i}` });
    const before = await settledPids();
    await here({ key: "regular" });
    expect(await settledPids(), "no fork for it").to.deep.equal(before);
  });

  it("dozens of hostile runs increase neither the pool, nor zombies, nor memory", async () => {
    await start();
    const hostile = [
      "async function main() { const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5)); }",
      "async function main() { 'x'.repeat(2 ** 28).split(''); }",
      "for (;;);",
      "async function main() { return 'x'.repeat(5e8); }",
      "async function main() { for (;;) console.log('x'.repeat(1000)); }",
      "async function main() { await new Promise(() => {}); }",
      "async function main() { (function dive() { dive(); })(); }",
      "async function main() { throw new Error('x'.repeat(1e6)); }",
    ];
    const runs = count(16, 1_000);
    let [early, late] = [0, 0];
    for (let i = 0; i < runs; i++) {
      await here({ key: `k${i % 3}`, limits: { wallMs: 150 } }, hostile[i % hostile.length]);
      late = process.memoryUsage().rss / 2 ** 20;
      if (i === Math.floor(runs / 4)) early = late;
    }
    expect((await here({ key: "k0" })).response).to.equal("1");
    await pids();
    const left = own();
    expect(left.filter(({ state }) => state.includes("Z"))).to.deep.equal([]);
    expect(left.length).to.equal(pool.stats().children);
    expect(pool.stats().children).to.be.at.most(6);
    expect(Math.max(...left.map(({ residentMiB }) => residentMiB))).to.be.below(400);
    expect(late - early, "growth of the keyholder's process in MiB").to.be.below(count(100, 150));
  }).timeout(count(60_000, 1_200_000));

  it("children end with their parent process, also when it is killed during an endless guest", async () => {
    const built = (file: string): string => JSON.stringify(join(__dirname, "../../../dist", file));
    const program = `
      const { createSandboxPool } = require(${built("executor/sandbox/pool.js")});
      const { RUN_LIMITS: limits } = require(${built("protocol/limits.js")});
      createSandboxPool({ limits, size: 2, logger: { warn() {}, error() {} }, fetcher: {} }).then((pool) => {
        const ops = async () => ({ ok: true, value: "1" });
        const onStarted = () => setTimeout(() => console.log("looping"), 300);
        const code = { bytes: Buffer.from("for (;;);"), drop() {} };
        pool.run({ account: "a", key: "k", code, cid: "", params: Buffer.from("{}"), limits, ops, onStarted });
      });`;
    const parent = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => parent.stdout.once("data", resolve));
    const children = childrenOf(parent.pid ?? 0, MARKER).map(({ pid }) => pid);
    expect(children.length).to.be.at.least(2);
    parent.kill("SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const alive = children.filter((pid) => ![undefined, "Z"].includes(factsOf(pid)?.state));
    await start();
    expect(alive).to.deep.equal([]);
  });
});
