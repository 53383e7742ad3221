/** The commands that pages show, run as they stand: each page's `sh` blocks in one bash, with the program as it is built, against a whole stack. */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENVIRONMENT } from "../../client/cli/config";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
const PAGES = ["cli.md", "policies.md"];

const blocksOf = (page: string): string[] => [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);

function bash(script: string, cwd: string, env: Record<string, string | undefined>): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve) => {
    const child = spawn("bash", ["-euo", "pipefail", "-c", script], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.once("close", (code) => resolve({ code, text }));
  });
}

describe("the commands that pages show", function () {
  this.timeout(90_000);
  const stack = useStack();
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "commands-"));
    const program = join(folder, "keywright");
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, "dist", "client", "cli", "main.js")}" "$@"\n`);
    chmodSync(program, 0o755);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const page of PAGES) {
    it(`docs/${page}`, async () => {
      const { PATH, HOME } = process.env;
      const env = {
        PATH: `${folder}:${join(process.execPath, "..")}:${PATH}`,
        HOME,
        KEYWRIGHT_URL: stack().baseUrl,
        KEYWRIGHT_CONFIG: join(folder, "logins.json"),
      };
      const blocks = blocksOf(readFileSync(join(ROOT, "docs", page), "utf8"));
      expect(blocks.length).to.be.greaterThan(0);
      const { code, text } = await bash(blocks.join("\n"), folder, env);
      expect(code, text).to.equal(0);
    });
  }

  it("docs/cli.md explains every variable the program reads", () => {
    const page = readFileSync(join(ROOT, "docs", "cli.md"), "utf8");
    for (const [name, meaning] of Object.entries(ENVIRONMENT)) expect(page).to.include(`| \`${name}\` | ${meaning} |`);
  });
});
