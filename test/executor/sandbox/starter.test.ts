/** The process that starts the children for the keyholder: what it inherits, and how it is replaced. */
import { readFileSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import type { SandboxPool } from "../../../executor/sandbox/types";
import { RUN_LIMITS } from "../../../protocol/limits";
import { childrenOf } from "../../support/children";
import { eventually } from "../../support/chainBed";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

const starters = () => childrenOf(process.pid, "starterProcess.js");
let own: ReturnType<typeof starters>[number];
const children = () => childrenOf(own.pid, "sandbox/child.js");
const HELLO = 'async function main() { return "hello"; }';
const HELLO_LATER = `async function main() {
  await new Promise((end) => setTimeout(end, 300));
  return "hello";
}`;

describe("the starter of children", function () {
  this.timeout(30_000);
  let pool: SandboxPool;
  const hello = async () => (await pool.run(jobOf(HELLO))).response;

  beforeEach(async () => {
    const before = starters().map(({ pid }) => pid);
    pool = await createSandboxPool({ limits: RUN_LIMITS, size: 1, logger: silent, fetcher: noFetcher });
    own = starters().find(({ pid }) => !before.includes(pid)) as typeof own;
  });
  afterEach(() => pool.close(0));

  it("inherits none of the keyholder's environment", () => {
    const names = readFileSync(`/proc/${own.pid}/environ`, "utf8")
      .split("\0")
      .map((entry) => entry.split("=")[0]);
    expect(names.filter((name) => name !== "")).to.have.members([
      "TZ",
      "NODE_CHANNEL_FD",
      "NODE_CHANNEL_SERIALIZATION_MODE",
    ]);
  });

  it("has the score of its children when memory runs out, so that they inherit it", () => {
    expect(readFileSync(`/proc/${own.pid}/oom_score_adj`, "latin1").trim()).to.equal("1000");
  });

  it("listens in a folder that only the keyholder's user can open", () => {
    const socket = own.command.split(" ").at(-1) as string;
    expect(statSync(dirname(socket)).mode & 0o777).to.equal(0o700);
  });

  it("is replaced after it was killed, and children are started again", async () => {
    expect(await hello()).to.equal('"hello"');
    await eventually("no child is starting", () => children().length === pool.stats().children);
    process.kill(own.pid, "SIGKILL");
    await eventually("its children have ended", () => pool.stats().children === 0);
    expect(await hello()).to.equal('"hello"');
  });

  describe("when it starts nothing for seconds, and the children it prepared are taken", () => {
    let isAwake: boolean;
    let timer: NodeJS.Timeout;
    let others: Promise<unknown>;
    const wake = () => {
      clearTimeout(timer);
      isAwake = process.kill(own.pid, "SIGCONT");
    };
    beforeEach(async () => {
      await pool.close(0);
      const before = starters().map(({ pid }) => pid);
      const parts = { limits: RUN_LIMITS, logger: silent, fetcher: noFetcher };
      pool = await createSandboxPool({ ...parts, size: 2, maxChildren: 12 });
      own = starters().find(({ pid }) => !before.includes(pid)) as typeof own;
      await hello();
      process.kill(own.pid, "SIGSTOP");
      isAwake = false;
      timer = setTimeout(wake, 8_000);
      others = Promise.all(["another", "a third"].map((account) => pool.run(jobOf(HELLO, { account }))));
    });
    afterEach(async () => {
      wake();
      await others;
    });

    it("a run gets a child of its owner's that becomes free", async () => {
      const both = await Promise.all([pool.run(jobOf(HELLO_LATER)), pool.run(jobOf(HELLO))]);
      expect(both.map(({ response }) => response)).to.deep.equal(['"hello"', '"hello"']);
      expect(isAwake).to.equal(false);
    });

    it("a run that is cancelled leaves at once", async () => {
      const cancelled = new AbortController();
      const run = pool.run(jobOf(HELLO, { account: "a fourth", signal: cancelled.signal })).catch(String);
      await eventually("it waits for a child", () => pool.stats().queued === 0);
      const busy = pool.stats().busy;
      cancelled.abort();
      expect(await run).to.contain("RunCancelled");
      expect(pool.stats().busy).to.equal(busy - 1);
      expect(isAwake).to.equal(false);
    });
  });

  it("survives a signal to the keyholder's process group, so that runs can finish", async () => {
    const running = pool.run(
      jobOf('async function main() { const end = Date.now() + 500; while (Date.now() < end); return "finished"; }'),
    );
    process.kill(own.pid, "SIGTERM");
    process.kill(own.pid, "SIGINT");
    expect((await running).response).to.equal('"finished"');
  });

  it("exits and removes its folder when the pool closes", async () => {
    await pool.close(0);
    await eventually("it has exited", () => !starters().some(({ pid }) => pid === own.pid));
    const folder = dirname(own.command.split(" ").at(-1) as string);
    expect(readdirSync(tmpdir()).map((name) => join(tmpdir(), name))).to.not.include(folder);
  });
});
