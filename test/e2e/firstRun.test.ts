/** The first runs by curl, in the README and step by step, work as printed. */
import { expectFirstRun, expectFirstSignature } from "../support/firstRun";
import { needs } from "../support/needs";
import { useStack } from "../support/stack";

describe("the first run by curl", () => {
  const stack = useStack();

  it("goes from a new account to a signature of the PKP, and to a revoked key", async function () {
    await needs(this, "curl");
    await expectFirstRun(stack().baseUrl);
  });

  it("gives a signature with the commands of the README", async function () {
    await needs(this, "curl");
    await expectFirstSignature(stack().baseUrl);
  });
});
