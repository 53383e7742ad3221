/** docs/llms.txt, SKILL.md and AGENTS.md are generated from the documentation (`node dist/scripts/agentDocs.js`). */
import { expect } from "chai";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { VERSION } from "../../protocol/version";
import { agentDocs } from "../../scripts/agentDocs";

const ROOT = join(__dirname, "..", "..");

/** What users read: pages, examples, what `init` writes, snippets. */
const READ = ["README.md", "SKILL.md", "CONTRIBUTING.md", "client/README.md", "client/project/templates.ts"];
const FOLDERS = ["docs", "examples", "client/cli", "dashboard/screens"];

describe("files for agents", () => {
  it("tell nobody to install a name from a registry, where it may be somebody else's", () => {
    const below = FOLDERS.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
    );
    for (const file of [...READ, ...below].filter((one) => /\.(md|txt|ts|tsx)$/.test(one))) {
      const text = readFileSync(join(ROOT, file), "utf8");
      expect(text, file).to.not.match(/npx (?!--no -- keywright\b)(-\S+ )*keywright\b/);
      expect(text, file).to.not.match(/\b(npm|pnpm|yarn|bun) (i|install|add|exec)\b[^\n`,]* keywright(?![\w-])/);
      for (const [, version] of text.matchAll(/\/packages\/keywright-(\d[^`\s"]*)\.tgz/g))
        expect(version, file).to.equal(VERSION);
    }
  });

  for (const [file, text] of Object.entries(agentDocs(ROOT))) {
    it(`${file} is fresh`, () => expect(readFileSync(join(ROOT, file), "utf8")).to.equal(text));
  }

  it("name every page and contain the first-run commands", () => {
    const { "docs/llms.txt": llms, "SKILL.md": skill, "AGENTS.md": agents } = agentDocs(ROOT);
    expect(llms).to.include("/docs/errors").and.to.include("/docs/policies");
    expect(skill).to.include("account create Acme --login").and.to.include("keywright run sign.js");
    expect(llms).to.include("/packages/keywright-");
    expect(agents).to.include("executor` never imports `relayer").and.to.include("npm run check");
  });
});
