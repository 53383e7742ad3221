/** The first runs by curl, in the README and step by step, work as printed. */
import { spawnSync } from "node:child_process";
import { expectFirstRun, expectFirstSignature } from "../support/firstRun";
import { useStack } from "../support/stack";

describe("the first run by curl", () => {
  const stack = useStack();

  it("goes from a new account to a signature of the PKP, and to a revoked key", async function () {
    if (spawnSync("curl", ["--version"]).status !== 0) this.skip();
    await expectFirstRun(stack().baseUrl);
  });

  it("gives a signature with the commands of the README", async function () {
    if (spawnSync("curl", ["--version"]).status !== 0) this.skip();
    await expectFirstSignature(stack().baseUrl);
  });
});
