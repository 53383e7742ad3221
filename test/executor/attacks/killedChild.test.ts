import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { POOL_SIZE, run, sharedPool } from "../../support/sandbox";

const childrenOf = (pid: number): number[] =>
  execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(pid)], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes("sandbox/child.js"))
    .map((line) => Number(line.trim().split(/\s+/)[0]));

const stateOf = (pid: number): string => execFileSync("ps", ["-o", "stat=", "--ppid", String(process.pid)], { encoding: "utf8" }) + pid;

/** The pid of the child that is using the processor. */
function busiest(): number {
  const lines = execFileSync("ps", ["-o", "pid=,cputimes=,args=", "--ppid", String(process.pid)], { encoding: "utf8" }).split("\n");
  const children = lines.filter((line) => line.includes("sandbox/child.js")).map((line) => line.trim().split(/\s+/).map(Number));
  return children.sort((a, b) => b[1]! - a[1]!)[0]![0]!;
}

describe("attack: kill -9 of a child in the middle of a run", function () {
  this.timeout(20_000);

  it("reports the run as crashed by our fault, keeps its logs, replaces the child and leaves no zombie", async () => {
    const pool = await sharedPool();
    const before = pool.stats().crashes;
    const running = run(`async function main() { console.log("before"); for (;;); }`, { account: "victim", limits: { wallMs: 15_000 } });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    process.kill(busiest(), "SIGKILL");
    const outcome = await running;
    expect(outcome.error?.code).to.equal("sandbox_crashed");
    expect(outcome).to.include({ logs: "before\n", response: "null", fault: "ours", startedGuest: true });
    expect(pool.stats().crashes).to.equal(before + 1);

    const startedAt = Date.now();
    const after = await Promise.all(Array.from({ length: POOL_SIZE }, (_, i) => run("async function main() { return 1; }", { account: `a${i}` })));
    expect(after.every(({ response }) => response === "1")).to.equal(true);
    expect(Date.now() - startedAt).to.be.below(2_000);
    expect(stateOf(0)).to.not.match(/Z/);
    expect(childrenOf(process.pid).length).to.equal(pool.stats().children);
  });
});
