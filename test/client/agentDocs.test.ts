/** docs/llms.txt, SKILL.md and AGENTS.md are generated from the documentation (`node dist/scripts/agentDocs.js`). */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agentDocs } from "../../scripts/agentDocs";

const ROOT = join(__dirname, "..", "..");

describe("files for agents", () => {
  for (const [file, text] of Object.entries(agentDocs(ROOT))) {
    it(`${file} is fresh`, () => expect(readFileSync(join(ROOT, file), "utf8")).to.equal(text));
  }

  it("name every page and contain the first-run commands", () => {
    const { "docs/llms.txt": llms, "SKILL.md": skill, "AGENTS.md": agents } = agentDocs(ROOT);
    expect(llms).to.include("/docs/errors").and.to.include("/docs/policies");
    expect(skill).to.include("keywright login").and.to.include("keywright run sign.js");
    expect(agents).to.include("executor` never imports `relayer").and.to.include("npm run check");
  });
});
