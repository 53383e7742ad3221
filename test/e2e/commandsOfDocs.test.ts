/**
 * The commands that pages show, run as they stand: each page's `sh` blocks in one bash, with the program as it is
 * built, against a whole stack.
 */
import { expect } from "chai";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENVIRONMENT } from "../../client/cli/config";
import { withHelp } from "../../scripts/cliHelp";
import { bash, commandsOf, programFolder, surroundings } from "../support/bash";
import { useStack } from "../support/stack";

const DOCS = join(__dirname, "..", "..", "docs");
const PAGES = ["cli.md", "policies.md"];

describe("the commands that pages show", function () {
  this.timeout(90_000);
  const stack = useStack();
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "commands-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const page of PAGES) {
    it(`docs/${page}`, async () => {
      const env = surroundings(programFolder(folder), {
        KEYWRIGHT_URL: stack().baseUrl,
        KEYWRIGHT_CONFIG: join(folder, "logins.json"),
      });
      const blocks = commandsOf(readFileSync(join(DOCS, page), "utf8"));
      expect(blocks.length).to.be.greaterThan(0);
      const { code, text } = await bash(blocks.join("\n"), folder, env);
      expect(code, text).to.equal(0);
    });
  }

  it("docs/cli.md explains every variable the program reads", () => {
    const page = readFileSync(join(DOCS, "cli.md"), "utf8");
    for (const [name, meaning] of Object.entries(ENVIRONMENT)) expect(page).to.include(`| \`${name}\` | ${meaning} |`);
  });

  it("docs/cli.md shows the program's own help (else: node dist/scripts/cliHelp.js)", () => {
    const page = readFileSync(join(DOCS, "cli.md"), "utf8");
    expect(page).to.equal(withHelp(page));
  });
});
