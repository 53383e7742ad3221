/** The journeys of docs/python.md, as a reader would run them: the page's blocks as one program. */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { verifyMessage } from "ethers";
import { needs } from "../support/needs";
import { useStack } from "../support/stack";

const DOCS = join(__dirname, "..", "..", "docs");

describe("documentation for other languages", function () {
  this.timeout(60_000);
  const stack = useStack();

  it("docs/python.md", async function () {
    await needs(this, "python3");
    const page = readFileSync(join(DOCS, "python.md"), "utf8");
    const program = [...page.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, block]) => block).join("\n");
    const { code, text } = await python(program, stack().baseUrl);
    expect(code, text).to.equal(0);
    const [, pkp = "", signature = ""] = /^signed (0x\w+) (0x\w+)$/m.exec(text) ?? [];
    expect(verifyMessage("hello", signature)).to.equal(pkp);
    expect(text).to.match(/^refused unknown_key$/m);
  });
});

function python(program: string, url: string): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn("python3", ["-"], { env: { PATH: process.env["PATH"], KEYWRIGHT_URL: url } });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, text }));
    child.stdin.end(program);
  });
}
