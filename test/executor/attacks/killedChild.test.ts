import { expect } from "chai";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import type { SandboxPool } from "../../../executor/sandbox/types";
import { RUN_LIMITS } from "../../../protocol/limits";
import { childrenOf } from "../../support/children";
import { jobOf, noFetcher, silent } from "../../support/sandbox";
import { expectInTime, itInTime } from "../../support/inTime";

const children = () => childrenOf(process.pid, "sandbox/child.js");

describe("attack: kill -9 of a child in the middle of a run", function () {
  // For all of its tries.
  this.timeout(60_000);
  let pool: SandboxPool | undefined;
  afterEach(() => pool?.close(0));

  itInTime("is a service fault; keeps the logs, replaces the child, leaves no zombie", async () => {
    await pool?.close(0);
    const others = new Set(children().map(({ pid }) => pid));
    pool = await createSandboxPool({ limits: RUN_LIMITS, size: 1, logger: silent, fetcher: noFetcher });
    const own = () => children().filter(({ pid }) => !others.has(pid));
    const [victim] = own();
    expect(own(), "a pool of one slot starts one child").to.have.lengthOf(1);
    const outcome = await pool.run(
      jobOf(`async function main() { console.log("before"); for (;;); }`, {
        onStarted: () => void setTimeout(() => process.kill(victim?.pid ?? 0, "SIGKILL"), 1_500),
      }),
    );
    expect(outcome.error?.code).to.equal("sandbox_crashed");
    expect(outcome).to.include({ logs: "before\n", response: "null", fault: "service" });
    expect(pool.stats().crashes).to.equal(1);

    const startedAt = Date.now();
    expect((await pool.run(jobOf("async function main() { return 1; }"))).response).to.equal("1");
    expectInTime(Date.now() - startedAt, 1_000);
    expect(own().filter(({ state }) => state.includes("Z"))).to.deep.equal([]);
    expect(own().map(({ pid }) => pid)).to.not.include(victim?.pid);
    await pool.close(0);
    expect(own()).to.deep.equal([]);
  });
});
