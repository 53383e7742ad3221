/** Errors of megabytes: what an action says of its failure is cut, whatever it has patched. */
import { expect } from "chai";
import { run } from "../../support/sandbox";

const MAX_CHARS = 8_192;

describe("attack: errors of megabytes", () => {
  const attacks = {
    "a message": `throw new Error("m".repeat(4e6));`,
    "a name": `throw Object.assign(new Error("m"), { name: "n".repeat(4e6) });`,
    "a stack": `throw Object.assign(new Error("m"), { stack: "s".repeat(4e6) });`,
    "a string that is thrown": `throw "t".repeat(4e6);`,
    "what a patched String.prototype.slice returns": `
      const long = "x".repeat(4e6);
      String.prototype.slice = () => long;
      throw new Error("m");`,
    "the length of a response, by a patched String": `
      globalThis.String = () => "x".repeat(4e6);
      return "r".repeat(2e6);`,
  };
  for (const [title, body] of Object.entries(attacks))
    it(title, async () => {
      const { error } = await run(`async function main() { ${body} }`);
      expect(error?.message.length).to.be.within(1, MAX_CHARS);
      expect(error?.stack?.length ?? 0).to.be.at.most(MAX_CHARS);
    });

  it("a name that the parser quotes", async () => {
    const name = "n".repeat(4e6);
    const { error } = await run(`let ${name}; let ${name};`);
    expect(error?.code).to.equal("invalid_code");
    expect(error?.message.length).to.be.within(1, MAX_CHARS);
  });

  it("thrown before main runs", async () => {
    const { error } = await run(`throw new Error("m".repeat(4e6));\nasync function main() {}`);
    expect(error?.code).to.equal("threw");
    expect(error?.message.length).to.be.within(1, MAX_CHARS);
  });
});
