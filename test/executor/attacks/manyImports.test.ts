/** A module that names so many others that following them fails in the child. */
import { expect } from "chai";
import { createHash } from "node:crypto";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

describe("attack: hundreds of thousands of imports in one module", function () {
  this.timeout(120_000);

  it("end the run within its limits and at the cost of its account", async () => {
    const source = Buffer.from(
      Array.from({ length: 370_000 }, (_, i) => `import"#${i.toString(36)}";`).join(""),
      "utf8",
    );
    const fetcher = { ...noFetcher, fetchModule: () => Promise.resolve(source) };
    const hash = createHash("sha384").update(source).digest("base64");
    const pool = await createSandboxPool({ limits: RUN_LIMITS, size: 2, logger: silent, fetcher });
    try {
      const limits = { wallMs: 60_000, importBytes: 16 * 2 ** 20, parseMs: 60_000 };
      const outcome = await pool.run(jobOf(`import "many@1.0.0#sha384-${hash}";`, { limits }));
      expect(outcome.error?.code).to.be.oneOf(["invalid_code", "limit_exceeded"]);
      expect(outcome.fault).to.equal(undefined);
    } finally {
      await pool.close(0);
    }
  });
});
