import { expect } from "chai";
import { readFileSync } from "node:fs";
import { childrenOf } from "../../support/children";
import { POOL_SIZE, run, sharedPool } from "../../support/sandbox";

const children = () => childrenOf(process.pid, "sandbox/child.js");

/** Processor time in ticks. */
function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

/** The pid of the child that is using the processor. */
async function busiest(): Promise<number> {
  const before = children().map(({ pid }) => ({ pid, ticks: ticksOf(pid) }));
  await new Promise((resolve) => setTimeout(resolve, 500));
  return before.map(({ pid, ticks }) => ({ pid, used: ticksOf(pid) - ticks })).sort((a, b) => b.used - a.used)[0]?.pid ?? 0;
}

describe("attack: kill -9 of a child in the middle of a run", function () {
  this.timeout(20_000);

  it("reports the run as crashed by our fault, keeps its logs, replaces the child and leaves no zombie", async () => {
    const pool = await sharedPool();
    const before = pool.stats().crashes;
    const running = run(`async function main() { console.log("before"); for (;;); }`, { account: "victim", limits: { wallMs: 15_000 } });
    await new Promise((resolve) => setTimeout(resolve, 300));
    process.kill(await busiest(), "SIGKILL");
    const outcome = await running;
    expect(outcome.error?.code).to.equal("sandbox_crashed");
    expect(outcome).to.include({ logs: "before\n", response: "null", fault: "ours", startedGuest: true });
    expect(pool.stats().crashes).to.equal(before + 1);

    const startedAt = Date.now();
    const after = await Promise.all(Array.from({ length: POOL_SIZE }, (_, i) => run("async function main() { return 1; }", { account: `a${i}` })));
    expect(after.every(({ response }) => response === "1")).to.equal(true);
    expect(Date.now() - startedAt).to.be.below(2_000);
    expect(children().filter(({ state }) => state.includes("Z"))).to.deep.equal([]);
    expect(children().length).to.equal(pool.stats().children);
  });
});
