import { expect } from "chai";
import { run } from "../../support/sandbox";

describe("attack: an error that pretends to be the host's", () => {
  for (const [what, patch] of Object.entries({
    "WeakMap.prototype.get": `WeakMap.prototype.get = () => "permission_denied";`,
    "Map.prototype.get": `Map.prototype.get = () => "permission_denied";`,
    "its own code": `Error.prototype.code = "permission_denied";`,
  })) {
    it(`gets no code by patching ${what}`, async () => {
      const { error } = await run(`async function main() { ${patch} throw new Error("mine"); }`);
      expect(error).to.include({ code: "threw", message: "mine" });
    });
  }

  const late = "Script execution timed out.";
  for (const [where, code] of Object.entries({
    "at top level": `throw new Error("${late}");`,
    "in a module": `export const x = 1; throw new Error("${late}");`,
    "in a rejection that nobody handles": `async function main() {
      Promise.reject(new Error("${late}"));
      await new Promise(() => {});
    }`,
  }))
    it(`is not out of time ${where}`, async () => {
      const { error } = await run(code);
      expect(error).to.include({ code: "threw", message: late });
    });

  it("is not refused at top level", async () => {
    const { error } = await run(`throw Object.assign(new Error("mine"), { code: "permission_denied" });`);
    expect(error).to.include({ code: "threw", message: "mine" });
  });
});
