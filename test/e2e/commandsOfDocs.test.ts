/**
 * The commands of the documentation, run unchanged: each page's `sh` blocks in one bash, with the built program,
 * against a whole stack.
 */
import { expect } from "chai";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENVIRONMENT } from "../../client/cli/config";
import { withHelp } from "../../scripts/cliHelp";
import { bash, commandsOf, linesOf, npmIn, programFolder, surroundings } from "../support/bash";
import { useStack } from "../support/stack";

const DOCS = join(__dirname, "..", "..", "docs");
const PAGES = ["cli.md", "policies.md"];
/** Pages whose commands need another environment, and the test that runs them. */
const BY_ITSELF = {
  "actions.md": "below",
  "api.md": "test/e2e/requestsOfDocs.test.ts",
  "payments.md": "test/e2e/requestsOfDocs.test.ts",
  "first-run.md": "test/e2e/firstRun.test.ts",
  "operations.md": "test/e2e/operatorPages.test.ts",
  "projects.md": "test/system/project.test.ts",
  // Its requests leave their code out; the test makes the same with code.
  "triggers.md": "test/e2e/triggers.test.ts",
  "verify.md": "test/e2e/operatorPages.test.ts",
};
const readIfPage = (name: string): string => (name.endsWith(".md") ? readFileSync(join(DOCS, name), "utf8") : "");

describe("the commands in the documentation", function () {
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

  it("docs/actions.md", async () => {
    const env = surroundings(npmIn(folder), {});
    const { code, text } = await bash(linesOf(readIfPage("actions.md")).join("\n"), join(DOCS, ".."), env);
    expect(code, text).to.equal(0);
    expect(text).to.match(/0x[0-9a-f]{130}/);
  });

  it("are run by a test for every page that has any", () => {
    const showing = readdirSync(DOCS).filter((name) => /^```(sh|bash)$/m.test(readIfPage(name)));
    expect(showing.sort()).to.deep.equal([...PAGES, ...Object.keys(BY_ITSELF)].sort());
  });

  it("docs/cli.md explains every variable the program reads", () => {
    const page = readFileSync(join(DOCS, "cli.md"), "utf8");
    for (const [name, meaning] of Object.entries(ENVIRONMENT)) expect(page).to.include(`| \`${name}\` | ${meaning} |`);
  });

  it("docs/cli.md shows the program's own help (else: node dist/scripts/cliHelp.js)", () => {
    const page = readFileSync(join(DOCS, "cli.md"), "utf8");
    expect(page).to.equal(withHelp(page));
  });
});
