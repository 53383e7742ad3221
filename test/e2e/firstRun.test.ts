/** The first runs by curl, in the README and step by step, lead where they say. */
import { spawnSync } from "node:child_process";
import { expectFirstRun, expectFirstSignature } from "../support/firstRun";
import { useStack } from "../support/stack";

describe("the first run by curl", () => {
  const stack = useStack();

  it("leads from nothing to a signature of the PKP, and to a refused key", async function () {
    if (spawnSync("curl", ["--version"]).status !== 0) this.skip();
    await expectFirstRun(stack().baseUrl);
  });

  it("gives a signature by the README's few lines", async function () {
    if (spawnSync("curl", ["--version"]).status !== 0) this.skip();
    await expectFirstSignature(stack().baseUrl);
  });
});
