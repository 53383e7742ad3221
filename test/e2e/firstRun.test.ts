/** The README's first run by curl leads where it says. */
import { spawnSync } from "node:child_process";
import { expectFirstRun } from "../support/firstRun";
import { useStack } from "../support/stack";

describe("the README's first run by curl", () => {
  const stack = useStack();

  it("leads from nothing to a signature of the PKP, and to a refused key", async function () {
    if (spawnSync("curl", ["--version"]).status !== 0) this.skip();
    await expectFirstRun(stack().baseUrl);
  });
});
