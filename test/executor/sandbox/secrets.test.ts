/** The inputs of an action are private: none of them appears in the service's logs, whatever fails. */
import { expect } from "chai";
import { Writable } from "node:stream";
import pino from "pino";
import { createFetcher } from "../../../executor/fetcher/client";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { RUN_LIMITS } from "../../../protocol/limits";
import { jobOf } from "../../support/sandbox";

const CANARY = "canary-2c7f9e";

describe("secrets of an action", function () {
  this.timeout(30_000);

  it("appear in no log line of the service, at any level, however the run ends", async () => {
    let logged = "";
    const sink = new Writable({ write: (chunk: Buffer, _encoding, done) => ((logged += chunk.toString()), done()) });
    const logger = pino({ level: "trace" }, sink);
    const fetcher = await createFetcher({ logger });
    const pool = await createSandboxPool({ limits: RUN_LIMITS, size: 2, logger, fetcher });
    const use = `const secret = params.secret + "${CANARY}"; console.log(secret);`;
    const ends = [
      `return secret;`,
      `throw new Error(secret);`,
      `await fetch("http://127.0.0.1/?" + secret, {
        headers: { authorization: secret },
        method: "POST",
        body: secret,
      });`,
      `await fetch("http://" + secret + ".invalid/").catch(() => 0);`,
      `await Actions.signMessage({ pkpId: secret, message: secret });`,
      `await Actions[secret]();`,
      `for (;;);`,
      `"x".repeat(2 ** 28).split("");`,
      `for (;;) console.log(secret.repeat(1000));`,
      `return secret.repeat(1e6);`,
    ];
    for (const [i, end] of ends.entries()) {
      const ops =
        i % 2 === 0
          ? () => Promise.reject(new Error("the chain cannot be read"))
          : () => ({ ok: false as const, code: "permission_denied", message: "no" });
      const code = `async function main(params) { ${use} ${end} }`;
      const { logs } = await pool.run(
        jobOf(code, { params: { secret: CANARY }, account: CANARY, key: CANARY, limits: { wallMs: 1_000 }, ops }),
      );
      expect(logs, end).to.contain(CANARY);
    }
    await pool.run(jobOf(`const broken = "${CANARY}" +;`, { params: { secret: CANARY } }));
    await pool.run(jobOf(`import x from "${CANARY}@1.0.0#sha384-${"A".repeat(64)}";`));
    logger.info("the end");
    await pool.close(0);
    await fetcher.close();
    expect(logged).to.contain("the end");
    expect(logged).to.not.contain(CANARY);
  });
});
