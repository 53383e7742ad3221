/**
 * docs/llms.txt, SKILL.md and AGENTS.md are what the documentation makes of them (`node dist/scripts/agentDocs.js`
 * writes them).
 */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agentDocs } from "../../scripts/agentDocs";

const ROOT = join(__dirname, "..", "..");

describe("what agents read first", () => {
  for (const [file, text] of Object.entries(agentDocs(ROOT))) {
    it(`${file} is fresh`, () => expect(readFileSync(join(ROOT, file), "utf8")).to.equal(text));
  }

  it("names every page and shows the journey", () => {
    const { "docs/llms.txt": llms, "SKILL.md": skill, "AGENTS.md": agents } = agentDocs(ROOT);
    expect(llms).to.include("/docs/errors").and.to.include("/docs/policies");
    expect(skill).to.include("keywright login").and.to.include("keywright run sign.js");
    expect(agents).to.include("executor` never imports `relayer").and.to.include("npm run check");
  });
});
