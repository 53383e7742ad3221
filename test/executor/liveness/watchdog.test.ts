/** A process that does not respond is ended, so that its supervisor restarts it. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { startStack } from "../../../scripts/dev/stack";
import { eventually } from "../../support/chainBed";
import { TestChain, TestExecutor } from "../../support/executor";
import { makeAccount } from "../../support/journey";

const DIST = join(__dirname, "../../../dist");
const MODULE = join(DIST, "executor/liveness/watchdog.js");

/** The exit of a process that starts the watchdog and then runs this; `output` is what it wrote. */
function endOf(program: string): Promise<{ signal: string | null; code: number | null; output: string; ms: number }> {
  const startedAt = performance.now();
  const watched = `require(${JSON.stringify(MODULE)}).startWatchdog({ intervalMs: 50, patience: 10 }); ${program}`;
  const child = spawn(process.execPath, ["-e", watched], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  return new Promise((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal, output, ms: performance.now() - startedAt })),
  );
}

describe("a keyholder that is stopped as a whole", function () {
  this.timeout(150_000);

  it("is ended by the container's healthcheck; a responding or absent one is not", async () => {
    const chain = await TestChain.start();
    // Identified by its working directory.
    const folder = mkdtempSync(join(tmpdir(), "keywright-healthcheck-"));
    symlinkSync(DIST, join(folder, "dist"));
    const executor = await TestExecutor.start(chain, {}, join(folder, "dist/executor/main.js"));
    const check = (): Promise<number | null> => {
      const asked = spawn(
        process.execPath,
        [join(folder, "dist/executor/liveness/healthcheck.js"), executor.socketPath],
        {
          stdio: "ignore",
        },
      );
      return new Promise((resolve) => asked.once("close", resolve));
    };
    try {
      expect(await check()).to.equal(0);
      const { child, died } = executor.process;
      const ended = died.catch(() => child.signalCode);
      child.kill("SIGSTOP");
      expect(await check()).to.equal(1);
      expect(await ended).to.equal("SIGKILL");
      expect(await check()).to.equal(1);
    } finally {
      await executor.stop();
      await chain.stop();
      rmSync(folder, { recursive: true });
    }
  });

  it("is ended and restarted by the development stack, within seconds", async () => {
    const stack = await startStack();
    try {
      const { child } = stack.service("executor");
      const account = await makeAccount(stack.baseUrl);
      const stoppedAt = performance.now();
      child.kill("SIGSTOP");
      await eventually("another one runs", () => stack.service("executor").child.pid !== child.pid, 30_000);
      expect(child.signalCode).to.equal("SIGKILL");
      await eventually("it signs", () => account.client.createWallet({}).then(Boolean, () => false), 30_000);
      expect(performance.now() - stoppedAt).to.be.below(40_000);
    } finally {
      await stack.stop();
    }
  });
});

describe("the watchdog", function () {
  this.timeout(20_000);

  it("ends a process whose event loop is blocked, and says why", async () => {
    const { signal, output } = await endOf("setTimeout(() => { for (;;); }, 100);");
    expect(signal).to.equal("SIGKILL");
    expect(JSON.parse(output)).to.include({ level: 60, msg: "the event loop does not answer; ending the process" });
  });

  it("also one that is blocked by a regular expression, inside the engine", async () => {
    expect((await endOf(`setTimeout(() => /^(a+)+$/.test("a".repeat(60) + "b"), 100);`)).signal).to.equal("SIGKILL");
  });

  it("leaves an intermittently busy process running, and keeps no process alive", async () => {
    const busy =
      "const until = Date.now() + 1500; const timer = setInterval(() => { const end = Date.now() + 100; while " +
      "(Date.now() < end); if (end > until) clearInterval(timer); }, 110);";
    expect(await endOf(busy)).to.include({ code: 0, signal: null, output: "" });
  });
});
