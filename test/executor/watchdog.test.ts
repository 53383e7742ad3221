/** A process that does not answer is ended, so that whoever started it can start it again. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";

const MODULE = join(__dirname, "../../dist/executor/watchdog.js");

/** How a process ends that starts the watchdog and then does this; `output` is what it wrote. */
function endOf(program: string): Promise<{ signal: string | null; code: number | null; output: string; ms: number }> {
  const startedAt = performance.now();
  const watched = `require(${JSON.stringify(MODULE)}).startWatchdog({ intervalMs: 50, patience: 10 }); ${program}`;
  const child = spawn(process.execPath, ["-e", watched], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  return new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal, output, ms: performance.now() - startedAt })));
}

describe("the watchdog", function () {
  this.timeout(20_000);

  it("ends a process whose event loop is held, and says why", async () => {
    const { signal, output } = await endOf("setTimeout(() => { for (;;); }, 100);");
    expect(signal).to.equal("SIGKILL");
    expect(JSON.parse(output)).to.include({ level: 60, msg: "the event loop does not answer; ending the process" });
  });

  it("also one that is held by a regular expression, inside the engine", async () => {
    expect((await endOf(`setTimeout(() => /^(a+)+$/.test("a".repeat(60) + "b"), 100);`)).signal).to.equal("SIGKILL");
  });

  it("leaves one alone that is only busy now and then, and keeps none alive", async () => {
    const busy =
      "const until = Date.now() + 1500; const timer = setInterval(() => { const end = Date.now() + 100; while (Date.now() < end); if (end > until) clearInterval(timer); }, 110);";
    expect(await endOf(busy)).to.include({ code: 0, signal: null, output: "" });
  });
});
