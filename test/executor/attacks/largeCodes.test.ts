/** Many large sources at once: what the keyholder keeps of them is bounded in sum, and accounts share it. */
import { expect } from "chai";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { setFlagsFromString } from "node:v8";
import { setTimeout as sleep } from "node:timers/promises";
import { runInNewContext } from "node:vm";
import { join } from "node:path";
import { Code } from "../../../executor/code/code";
import { CodeStore } from "../../../executor/code/store";
import { FetchFailed } from "../../../executor/fetcher/types";
import { ExecutorServer, type Handlers } from "../../../executor/server";
import { CidComputer } from "../../../protocol/cidComputer";
import { KeywrightError } from "../../../protocol/errors";
import { EXECUTOR_CALLS, SHARE_HEADER } from "../../../protocol/executor";
import { MIB, SHARED_LIMITS } from "../../../protocol/limits";
import { ExecutorClient } from "../../../relayer/executor/client";
import { expectInTime } from "../../support/inTime";
import { Preempted } from "../../../protocol/fairShare";
import { silent } from "../../support/sandbox";

const CODE_MIB = 12;
/** Until they are parsed: one character beyond Latin-1 makes all take two bytes, and the text is there twice. */
const MOST = SHARED_LIMITS.codeMemoryBytes / (CODE_MIB * MIB * 5);

/** Bytes in use after what is not referred to any more was collected. */
function inUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe("attack: dozens of sources of many megabytes", function () {
  this.timeout(60_000);
  const code = `${" ".repeat(CODE_MIB * MIB)}😀`;
  let folder: string;
  let server: ExecutorServer;
  let client: ExecutorClient;
  let stop: PromiseWithResolvers<undefined>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "keywright-code-"));
    server = await ExecutorServer.listen({ socketPath: join(folder, "socket"), logger: silent });
    client = new ExecutorClient(join(folder, "socket"));
    stop = Promise.withResolvers();
  });
  afterEach(async () => {
    stop.resolve(undefined);
    await client.close();
    await server.close(0);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  const serveRuns = (run: Handlers["run"]): void => server.serve({ run } as Partial<Handlers> as Handlers);
  const ask = (account: string, params: string): Promise<unknown> => {
    const credential = { type: "key", key: "k" } as const;
    const asked = client.askRun({ credential, code, params, notBefore: Promise.resolve(0) }, { account });
    return asked.permission.catch((error: unknown) => error);
  };

  const post = (size: string, body: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { [SHARE_HEADER]: `${size} account` };
      request({ socketPath: join(folder, "socket"), path: EXECUTOR_CALLS.run.path, method: "POST", headers })
        .once("response", (response) => (response.resume(), resolve(response.statusCode)))
        .once("error", reject)
        .end(body);
    });

  it("are refused as queue_full where others needed what their run held before it began", async () => {
    serveRuns(() => Promise.reject(new Preempted()));
    expect(await ask("account", "{}")).to.include({ code: "queue_full", status: 429 });
  });

  it("are read as there is memory for them, and another account's at once", async () => {
    const under = { now: 0, most: 0 };
    serveRuns(async ({ params }) => {
      under.most = Math.max(under.most, ++under.now);
      if (params === "{}") await stop.promise;
      under.now--;
      throw new Error("this test runs nothing");
    });
    const attack = Array.from({ length: 20 }, () => ask("attacker", "{}"));
    const startedAt = performance.now();
    await ask("honest", "{ }");
    expectInTime(performance.now() - startedAt, 10_000, "another account's code");
    while (under.now < 2) await sleep(20);
    await sleep(1_000);
    expect(under.most).to.be.within(2, MOST);
    stop.resolve(undefined);
    await Promise.all(attack);
  });

  it("that cannot be handed over from the thread that parses them are refused alone", async () => {
    serveRuns(() => Promise.reject(new KeywrightError("unknown_key", "this test runs nothing")));
    const deep = `{"a":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`;
    const [refused, ...others] = await Promise.all([post("3000000", deep), ask("honest", "{}"), ask("honest", "{}")]);
    expect(refused).to.equal(500);
    for (const other of others) expect(other).to.include({ code: "unknown_key" });
  });

  it("of which a relayer says nonsense count as the largest, and are read all the same", async () => {
    serveRuns(() => Promise.reject(new Error("this test runs nothing")));
    for (const size of ["many", "-1e9", "NaN", "1e99", "-Infinity", "0x7fffffff"]) {
      expect(await post(size, "{}"), size).to.equal(422);
      expect([server.codeMemory.taken, server.codeMemory.waiting], size).to.deep.equal([0, 0]);
    }
  });

  it("are no longer in memory, and do not keep others' out, when their children have them", async () => {
    const cids = new CidComputer();
    const store = await CodeStore.open(join(folder, "store"), MIB);
    const none = { fetchCode: () => Promise.reject(new FetchFailed("not_found", "no")) };
    const codes = new Code(cids, store, none, 2 * CODE_MIB * MIB, server.codeMemory);
    let asleep = 0;
    serveRuns(async (request, { large }) => {
      const source = await codes.identify(request, large);
      return codes.use(source, { account: "a" }, async (given) => {
        expect(given.bytes.length).to.equal(Buffer.byteLength(code));
        given.drop();
        asleep++;
        await stop.promise;
        throw new Error("this test runs nothing");
      });
    });
    const before = inUse();
    const attack = Array.from({ length: 24 }, (_, i) => ask(`account ${i % 4}`, "{}"));
    while (asleep < attack.length) await sleep(20);
    expect(server.codeMemory.taken).to.equal(0);
    expect((inUse() - before) / MIB).to.be.below(3 * CODE_MIB);
    stop.resolve(undefined);
    await Promise.all(attack);
    await cids.close();
  });
});
