/**
 * The journeys of docs/python.md and docs/go.md, as a reader would run them: a page's blocks as one program. Go
 * compiles its library first, so its page is for deep runs.
 */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyMessage } from "ethers";
import { count } from "../support/counts";
import { needs } from "../support/needs";
import { useStack } from "../support/stack";

const DOCS = join(__dirname, "..", "..", "docs");
const IS_DEEP = count(0, 1) === 1;

describe("documentation for other languages", function () {
  this.timeout(60_000);
  const stack = useStack();

  it("docs/python.md", async function () {
    await needs(this, "python3");
    requireJourney(await run(["python3", "-"], stack().baseUrl, programOf("python")));
  });

  it("docs/python.md, where a gateway answers with a page of its own", async function () {
    await needs(this, "python3");
    const gateway = createServer((_, answer) => answer.writeHead(502, { "content-type": "text/html" }).end("<p>"));
    await once(gateway.listen(0, "127.0.0.1"), "listening");
    try {
      const { port } = gateway.address() as AddressInfo;
      const { text } = await run(["python3", "-"], `http://127.0.0.1:${port}`, programOf("python"));
      expect(text).to.match(/HTTPError: HTTP Error 502: Bad Gateway\n$/);
    } finally {
      gateway.close();
    }
  });

  if (IS_DEEP)
    it("docs/go.md", async function () {
      this.timeout(600_000);
      await needs(this, "go");
      const folder = mkdtempSync(join(tmpdir(), "go-page-"));
      try {
        writeFileSync(join(folder, "main.go"), programOf("go"));
        requireJourney(await run(["go", "run", join(folder, "main.go")], stack().baseUrl));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
});

function programOf(language: "python" | "go"): string {
  const page = readFileSync(join(DOCS, `${language}.md`), "utf8");
  const blocks = page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"));
  return [...blocks].map(([, block]) => block).join("\n");
}

/** The page's program signed with its PKP, and was refused with the revoked key. */
function requireJourney({ code, text }: { code: number | null; text: string }): void {
  expect(code, text).to.equal(0);
  const [, pkp = "", signature = ""] = /^signed (0x\w+) (0x\w+)$/m.exec(text) ?? [];
  expect(verifyMessage("hello", signature)).to.equal(pkp);
  expect(text).to.match(/^refused unknown_key$/m);
}

function run(
  [command = "", ...args]: readonly string[],
  url: string,
  input = "",
): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const { PATH, HOME } = process.env;
    const child = spawn(command, args, { env: { PATH, HOME, KEYWRIGHT_URL: url } });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, text }));
    child.stdin.end(input);
  });
}
