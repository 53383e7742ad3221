/** Many large sources at once: what the keyholder keeps of them is bounded in sum, and accounts share it. */
import { expect } from "chai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ExecutorServer, type Handlers } from "../../../executor/server";
import { MIB, SHARED_LIMITS } from "../../../protocol/limits";
import { ExecutorClient } from "../../../relayer/executor/client";
import { expectInTime } from "../../support/inTime";
import { silent } from "../../support/sandbox";

const CODE_MIB = 12;
/** As V8 stores it: one character beyond Latin-1 makes the whole text two bytes a character, and it is kept thrice. */
const MOST = SHARED_LIMITS.codeMemoryBytes / (CODE_MIB * MIB * 5);

describe("attack: dozens of sources of many megabytes", function () {
  this.timeout(60_000);

  it("are read as there is memory for them, and another account's at once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "keywright-code-"));
    const server = await ExecutorServer.listen({ socketPath: join(folder, "socket"), logger: silent });
    const under = { now: 0, most: 0 };
    const stop = Promise.withResolvers<undefined>();
    server.serve({
      run: async ({ params }) => {
        under.most = Math.max(under.most, ++under.now);
        if (params === "{}") await stop.promise;
        under.now--;
        throw new Error("this test runs nothing");
      },
    } as Partial<Handlers> as Handlers);
    const client = new ExecutorClient(join(folder, "socket"));
    try {
      const code = `${" ".repeat(CODE_MIB * MIB)}😀`;
      const ask = (account: string, params: string): Promise<unknown> => {
        const credential = { type: "key", key: "k" } as const;
        const asked = client.askRun({ credential, code, params, notBefore: 0 }, { account });
        return asked.permission.catch((error: unknown) => error);
      };
      const attack = Array.from({ length: 20 }, () => ask("attacker", "{}"));
      const startedAt = performance.now();
      await ask("honest", "{ }");
      expectInTime(performance.now() - startedAt, 10_000, "another account's code");
      while (under.now < 2) await new Promise((resolve) => setTimeout(resolve, 20));
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(under.most).to.be.within(2, MOST);
      stop.resolve(undefined);
      await Promise.all(attack);
    } finally {
      await client.close();
      await server.close(0);
      rmSync(folder, { recursive: true });
    }
  });
});
