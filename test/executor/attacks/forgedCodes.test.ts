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
});
