/** `npm run demo` as a program: it exits with 0 only if every step succeeded. */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { useStack } from "../support/stack";

const DEMO = join(__dirname, "..", "..", "dist", "scripts", "demo.js");

async function demo(url: string): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, [DEMO], { env: { ...process.env, KEYWRIGHT_URL: url } });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { status, output };
}

describe("the demo", () => {
  const stack = useStack();

  it("completes every step on a running stack, a line per step", async () => {
    const { status, output } = await demo(stack().baseUrl);
    expect(status, output).to.equal(0);
    expect(output)
      .to.match(/recovered +0x[0-9a-fA-F]{40}: the PKP signed/)
      .and.to.include("Everything held.");
    expect(output.match(/^ *\d+\. /gm)).to.have.length.at.least(12);
  });

  it("exits with 1 where there is no service", async () => {
    const { status, output } = await demo("http://127.0.0.1:1");
    expect(status, output).to.equal(1);
    expect(output).to.include("network_failed").and.not.to.include("Everything held.");
  });
});
