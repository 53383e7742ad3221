/** A run in two parts: the executor asks the contract while the relayer reserves credit, and nothing runs before it is paid for. Source: protocol/executor.ts. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { expect } from "chai";
import { Agent, request } from "undici";
import { cidOfCode } from "../../protocol/cid";
import { EXECUTOR_CALLS } from "../../protocol/executor";
import { ExecutorClient } from "../../relayer/executorClient";
import { TestAccount, TestChain, TestExecutor } from "../support/executor";
import { refusal } from "../support/refusal";

const HELLO = "async function main() { console.log('ran'); return 'hello'; }";
const ELSEWHERE = "async function main() { return 'kept by somebody else'; }";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("a run that is prepared and then started", () => {
  let chain: TestChain;
  let executor: TestExecutor;
  let client: ExecutorClient;
  let account: TestAccount;
  let agent: Agent;
  /** Where code by CID is fetched from: has none, and counts who asks. */
  let gateway: Server;
  let fetches = 0;
  before(async () => {
    gateway = createServer((_request, response) => {
      fetches += 1;
      response.writeHead(404).end();
    }).listen(0, "127.0.0.1");
    await once(gateway, "listening");
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain, { KUBO_RPC_URL: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}` });
    client = new ExecutorClient(executor.socketPath);
    agent = new Agent({ connect: { socketPath: executor.socketPath } });
    await chain.register((await executor.call("payers", { count: 1 })).payers[0] as string);
    account = await TestAccount.create(chain, executor);
    await account.addGroup([HELLO, ELSEWHERE], []);
  });
  after(async () => {
    await client?.close();
    await agent?.destroy();
    await executor?.stop();
    await chain?.stop();
    gateway?.close();
  });

  const asked = (key: string) => ({ credential: { type: "key", key } as const, code: HELLO, params: "{}" });
  const busy = async (): Promise<number> => (await executor.call("info", {})).pool.busy;
  /** Runs the executor's log tells of, once it has written its lines out. */
  const ranLines = async (): Promise<number> => {
    await pause(250);
    return executor.logs.filter((line) => line.includes('"ran"')).length;
  };

  /** Both parts as they are, each sent when it is due. */
  async function inParts(first: string, second: string): Promise<{ status: number; code: unknown }> {
    const body = async function* (): AsyncIterable<Buffer> {
      yield Buffer.from(first);
      await pause(50);
      yield Buffer.from(second);
    };
    const { statusCode, body: answer } = await request(`http://executor${EXECUTOR_CALLS.run.path}`, {
      method: "POST",
      dispatcher: agent,
      headers: { "content-type": "application/json" },
      body: Readable.from(body()),
    });
    return { status: statusCode, code: ((await answer.json()) as { code?: unknown }).code };
  }

  it("begins only when it is started, for as long as was said", async () => {
    const before_ = await ranLines();
    const prepared = client.prepareRun(asked(account.key));
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
    const { response, logs, usage } = await prepared.start(1_234);
    expect([response, logs, usage.limitMs]).to.deep.equal(['"hello"', "ran\n", 1_234]);
  });

  it("never begins when it is abandoned, and leaves no place taken", async () => {
    const before_ = await ranLines();
    for (let i = 0; i < 20; i++) client.prepareRun(asked(account.key)).abandon();
    const late = client.prepareRun(asked(account.key));
    await pause(200);
    late.abandon();
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
    expect((await client.prepareRun(asked(account.key)).start(5_000)).response).to.equal('"hello"');
  });

  it("has no code fetched for it before it is started", async () => {
    const byCid = { credential: { type: "key", key: account.key } as const, cid: await cidOfCode(ELSEWHERE), params: "{}" };
    const prepared = client.prepareRun(byCid);
    await pause(300);
    prepared.abandon();
    await pause(100);
    expect(fetches).to.equal(0);
    expect((await refusal(client.prepareRun(byCid).start(5_000))).code).to.be.oneOf(["code_not_found", "code_unavailable"]);
    expect(fetches).to.be.at.least(1);
  });

  it("is asked about again when it was prepared long before it starts", async () => {
    const bot = await account.addUsageKey([1]);
    const prepared = client.prepareRun(asked(bot.key));
    await pause(200);
    await account.write("removeUsageApiKey", [account.id, bot.id]);
    await pause(1_100);
    expect((await refusal(prepared.start(5_000))).code).to.equal("unknown_key");
  });

  it("is refused for what the contract says, whenever it is started", async () => {
    const stranger = Buffer.alloc(32, 7).toString("base64");
    const prepared = client.prepareRun(asked(stranger));
    await pause(200);
    expect((await refusal(prepared.start(5_000))).code).to.equal("unknown_key");
  });

  it("does not begin on a second part that is missing, or says nothing that counts", async () => {
    const before_ = await ranLines();
    const first = `${JSON.stringify(asked(account.key))}\n`;
    for (const second of ["", " ", "{}", '{"limitMs":0}', '{"limitMs":"9"}', '{"limitMs":1e99}', '{"limitMs":5,"key":1}', "limit", '{"limitMs":5']) {
      const { status, code } = await inParts(first, second);
      expect([status, code], second).to.be.deep.oneOf([
        [422, "invalid_body"],
        [400, "malformed_json"],
      ]);
    }
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
    expect((await inParts(first.slice(0, 40), `${first.slice(40)}{"limitMs":5000}`)).status, "split anywhere").to.equal(200);
  });
});
