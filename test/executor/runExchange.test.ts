/**
 * A run in parts: the executor asks the contract, not before the block of the last write, and reports the permission;
 * nothing runs before payment. A compromised relayer gains no run by sending other parts.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { expect } from "chai";
import { Agent, request } from "undici";
import { cidOfCode } from "../../protocol/cid";
import { EXECUTOR_CALLS } from "../../protocol/executor";
import type { KeyState } from "../../protocol/keyState";
import type { RunQuestion } from "../../relayer/executor/runBody";
import { DeniedRun, type RequestedRun } from "../../relayer/executor/runExchange";
import { ExecutorClient } from "../../relayer/executor/client";
import { TestAccount, TestChain, TestExecutor } from "../support/executor";
import { refusal } from "../support/refusal";
import { RpcProxy } from "../support/rpcProxy";

const HELLO = "async function main() { console.log('ran'); return 'hello'; }";
/** Sent in chunks whose boundaries fall inside multi-byte characters. */
const LARGE = `// ${"\u{1F511}".repeat(400_000)} "\\"\n${HELLO}`;
const SLEEP = "async function main() { await new Promise((resolve) => setTimeout(resolve, 8000)); }";
const ELSEWHERE = "async function main() { return 'kept by somebody else'; }";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("a run that is requested and then started", () => {
  let chain: TestChain;
  let executor: TestExecutor;
  let client: ExecutorClient;
  let account: TestAccount;
  let agent: Agent;
  /** The source of code by CID: has none, and counts requests. */
  let gateway: Server;
  let fetches = 0;
  before(async () => {
    gateway = createServer((_request, response) => {
      fetches += 1;
      response.writeHead(404).end();
    }).listen(0, "127.0.0.1");
    await once(gateway, "listening");
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain, {
      KUBO_RPC_URL: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    });
    client = new ExecutorClient(executor.socketPath);
    agent = new Agent({ connect: { socketPath: executor.socketPath } });
    await chain.register((await executor.call("payers", { count: 1 })).payers[0] as string);
    account = await TestAccount.create(chain, executor);
    await account.addGroup([HELLO, ELSEWHERE, SLEEP, LARGE], []);
  });
  after(async () => {
    await client?.close();
    await agent?.destroy();
    await executor?.stop();
    await chain?.stop();
    gateway?.close();
  });

  const asked = (key: string) => ({ credential: { type: "key", key } as const, code: HELLO, params: "{}" });
  /** Of a relayer that knows of no write, unless it says otherwise. */
  const ask = (key: string, changes: Partial<RunQuestion> = {}): RequestedRun =>
    client.askRun({ ...asked(key), notBefore: Promise.resolve(0), ...changes });
  const busy = async (): Promise<number> => (await executor.call("info", {})).pool.busy;
  /** The runs in the executor's log, once it is flushed. */
  const ranLines = async (): Promise<number> => {
    await pause(250);
    return executor.logs.filter((line) => line.includes('"ran"')).length;
  };

  /** Both halves of a body, each sent when it is due; returns the lines of the answer. */
  async function inParts(
    first: string,
    second: string,
  ): Promise<{ status: number; lines: { key?: unknown; refused?: { code: string }; answer?: unknown }[] }> {
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
    const lines = (await answer.text()).trim().split("\n");
    return { status: statusCode, lines: lines.map((line) => JSON.parse(line) as object) };
  }

  it("is permitted to a known key, and reports everything the relayer needs for payment", async () => {
    const bot = await account.addUsageKey([1], 0, 25);
    const permissionOf = async (key: string): Promise<KeyState> => {
      const run = ask(key);
      const permission = await run.permission;
      run.abandon();
      return permission;
    };
    const managed = { accountId: account.id, live: true, managed: true, expiresAtSeconds: 0n };
    expect(await permissionOf(account.key)).to.deep.equal({
      ...managed,
      keyId: account.id,
      isAccountKey: true,
      capCents: 0n,
    });
    expect(await permissionOf(bot.key)).to.deep.equal({
      ...managed,
      keyId: bot.id,
      isAccountKey: false,
      capCents: 25n,
    });
  });

  it("names the key when it is denied, so that the relayer reports the refusal in its order", async () => {
    const nowhere = await account.addUsageKey([]);
    const denied = await ask(nowhere.key).permission.catch((error: unknown) => error);
    expect(denied).to.be.instanceOf(DeniedRun);
    expect(denied).to.include({ code: "no_execute_scope" }).and.to.have.nested.property("key.keyId", nowhere.id);
  });

  it("begins only when it is started, for as long as stated", async () => {
    const before_ = await ranLines();
    const permitted = ask(account.key);
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
    const { response, logs, usage } = await permitted.start(1_234);
    expect([response, logs, usage.limitMs]).to.deep.equal(['"hello"', "ran\n", 1_234]);
  });

  it("passes large code on unchanged, to the character", async () => {
    const { response, cid } = await ask(account.key, { code: LARGE }).start(5_000);
    expect([response, cid]).to.deep.equal(['"hello"', await cidOfCode(LARGE)]);
  });

  it("never begins when it is abandoned, before or after its permission, and frees its slot", async () => {
    const before_ = await ranLines();
    for (let i = 0; i < 20; i++) ask(account.key).abandon();
    for (let i = 0; i < 20; i++) {
      const late = ask(account.key);
      await late.permission;
      late.abandon();
    }
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
    expect((await ask(account.key).start(5_000)).response).to.equal('"hello"');
  });

  it("takes no slot of the sandbox until it is paid for", async () => {
    const waiting = Array.from({ length: 40 }, () => ask(account.key));
    await Promise.all(waiting.map(({ permission }) => permission));
    expect(await busy()).to.equal(0);
    expect((await ask(account.key).start(5_000)).response).to.equal('"hello"');
    for (const run of waiting) run.abandon();
  });

  it("blocks no other call while it holds the connections of runs", async () => {
    const narrow = new ExecutorClient(executor.socketPath, { connections: 1 });
    const waiting = narrow.askRun({ ...asked(account.key), notBefore: Promise.resolve(0) });
    try {
      await waiting.permission;
      expect((await narrow.call("ready", {})).ready).to.equal(true);
    } finally {
      waiting.abandon();
      await narrow.close();
    }
  });

  it("has not run when the executor is lost before its start, and may have run when it is lost after", async () => {
    const lost = await TestExecutor.start(chain, {});
    const other = new ExecutorClient(lost.socketPath);
    try {
      const notBefore = Promise.resolve(0);
      const [before_, after_] = [
        other.askRun({ ...asked(account.key), notBefore }),
        other.askRun({ ...asked(account.key), notBefore, code: SLEEP }),
      ];
      await Promise.all([before_.permission, after_.permission]);
      const outcome = refusal(after_.start(9_000));
      await pause(300);
      lost.process.child.kill("SIGKILL");
      expect([(await outcome).code, after_.mayHaveRun]).to.deep.equal(["executor_unavailable", true]);
      await pause(100);
      expect([(await refusal(before_.start(5_000))).code, before_.mayHaveRun]).to.deep.equal([
        "executor_unavailable",
        false,
      ]);
    } finally {
      await other.close();
      await lost.stop();
    }
  });

  it("has no code fetched for it before it is started", async () => {
    const byCid = {
      credential: { type: "key", key: account.key } as const,
      cid: await cidOfCode(ELSEWHERE),
      params: "{}",
      notBefore: Promise.resolve(0),
    };
    const permitted = client.askRun(byCid);
    await pause(300);
    permitted.abandon();
    await pause(100);
    expect(fetches).to.equal(0);
    expect((await refusal(client.askRun(byCid).start(5_000))).code).to.be.oneOf(["code_not_found", "code_unavailable"]);
    expect(fetches).to.be.at.least(1);
  });

  it("is decided again when it was permitted long before its start", async () => {
    const bot = await account.addUsageKey([1]);
    const permitted = ask(bot.key);
    await pause(200);
    await account.write("removeUsageApiKey", [account.id, bot.id]);
    await pause(1_100);
    expect((await refusal(permitted.start(5_000))).code).to.equal("unknown_key");
  });

  it("is refused by the contract's decision, whenever it is started", async () => {
    const stranger = Buffer.alloc(32, 7).toString("base64");
    const permitted = ask(stranger);
    await pause(200);
    expect((await refusal(permitted.start(5_000))).code).to.equal("unknown_key");
  });

  const line = (part: object): string => `${JSON.stringify(part)}\n`;
  const NOT_BEFORE = line({ notBefore: 0 });

  it("does not begin when its last part is missing or invalid", async () => {
    const before_ = await ranLines();
    const first = line(asked(account.key)) + NOT_BEFORE;
    for (const last of [
      "",
      " ",
      "{}",
      '{"limitMs":0}',
      '{"limitMs":"9"}',
      '{"limitMs":1e99}',
      '{"limitMs":5,"key":1}',
      "limit",
      '{"limitMs":5',
    ]) {
      const { status, lines } = await inParts(first, last);
      expect([status, lines.length], last).to.deep.equal([200, 2]);
      expect(lines[1]?.refused?.code, last).to.be.oneOf(["invalid_body", "malformed_json"]);
    }
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
    for (const length of [40, first.length - 20, first.length - 1]) {
      const { lines } = await inParts(first.slice(0, length), `${first.slice(length)}{"limitMs":5000}`);
      expect(lines[1], `split at ${length}`).to.have.nested.property("answer.response", '"hello"');
    }
  });

  it("is not permitted when the block of the last write is missing or invalid", async () => {
    const before_ = await ranLines();
    for (const second of ["", "{}", '{"notBefore":-1}', '{"notBefore":"0"}', '{"notBefore":0,"limitMs":5}', "0"])
      for (const last of ["", '\n{"limitMs":5000}']) {
        const { status, lines } = await inParts(line(asked(account.key)), second + last);
        expect([status, lines.length], second).to.deep.equal([second === "" ? 400 : 422, 1]);
      }
    expect([await busy(), await ranLines()]).to.deep.equal([0, before_]);
  });

  describe("right after a write of another relayer", () => {
    let proxy: RpcProxy;
    let nearby: TestExecutor;
    let relayer: ExecutorClient;
    before(async () => {
      proxy = await RpcProxy.start(chain.rpcUrl);
      nearby = await TestExecutor.start({ rpcUrl: proxy.url, contractAddress: chain.contractAddress });
      relayer = new ExecutorClient(nearby.socketPath);
    });
    after(async () => {
      await relayer?.close();
      await nearby?.stop();
      await proxy?.stop();
    });
    afterEach(() => proxy.heal());

    const askNearby = (key: string, notBefore: Promise<number>): RequestedRun =>
      relayer.askRun({ ...asked(key), notBefore });
    const calls = (): number => proxy.seen.filter(({ method }) => method === "eth_call").length;
    const newest = (): Promise<number> => chain.provider.getBlockNumber();
    const unasked = { pending: true };
    const settledOf = (run: RequestedRun): Promise<unknown> =>
      Promise.race([run.permission.catch(({ code }: { code: string }) => code), pause(100).then(() => unasked)]);
    /** A key, and the write that makes it. */
    async function unmadeKey(): Promise<{ key: string; id: string; make: () => Promise<void> }> {
      const { usageApiKey: key, apiKeyHash: id } = await executor.call("mintApiUsageKey", {});
      return { key, id, make: () => account.setUsageKey(id, [1]) };
    }
    const madeKey = async () => {
      const made = await account.addUsageKey([1]);
      return { ...made, revoke: () => account.write("removeUsageApiKey", [account.id, made.id]) };
    };

    /** The contract has answered before the write is made, and the store says only afterwards that it was. */
    async function decidedBefore(key: string, write: () => Promise<void>): Promise<RequestedRun> {
      const store = Promise.withResolvers<number>();
      const before_ = calls();
      const run = askNearby(key, store.promise);
      while (calls() === before_) await pause(5);
      expect(await settledOf(run), "nothing is answered before the store").to.equal(unasked);
      await write();
      store.resolve(await newest());
      return run;
    }

    /** The store has answered at once; the node's newest block is still the one before the write. */
    async function askedOfLaggingNode(key: string, write: () => Promise<void>): Promise<RequestedRun> {
      const old = `0x${(await newest()).toString(16)}`;
      await write();
      proxy.injectTimes(1, "eth_call", async ({ params: [call] }) => ({
        result: await chain.provider.send("eth_call", [call, old]),
      }));
      return askNearby(key, Promise.resolve(await newest()));
    }

    for (const [how, askAround] of [
      ["by a slow store", decidedBefore],
      ["by a fast store, and a node that lags", askedOfLaggingNode],
    ] as const) {
      it(`that revoked its key is refused: ${how}`, async () => {
        const { key, revoke } = await madeKey();
        const run = await askAround(key, revoke);
        expect((await refusal(run.permission)).code).to.equal("unknown_key");
      });

      it(`that made its key is permitted: ${how}`, async () => {
        const { key, id, make } = await unmadeKey();
        const run = await askAround(key, make);
        expect((await run.permission).keyId).to.equal(id);
        expect((await run.start(5_000)).response).to.equal('"hello"');
      });
    }

    it("asks the contract once where there was no write, however late the store says so", async () => {
      const known = await newest();
      for (const lateMs of [0, 100]) {
        const before_ = calls();
        const run = askNearby(account.key, lateMs === 0 ? Promise.resolve(known) : pause(lateMs).then(() => known));
        await run.permission;
        expect(calls() - before_, `${lateMs} ms`).to.equal(1);
        run.abandon();
      }
    });

    it("fails where the store fails, with its error, and never begins", async () => {
      const unhandled: unknown[] = [];
      const note = (error: unknown): void => void unhandled.push(error);
      process.on("unhandledRejection", note);
      const away = new Error("away");
      const fails = [() => Promise.reject(away), () => pause(100).then(() => Promise.reject(away))];
      try {
        for (const failing of fails)
          for (const key of [account.key, Buffer.alloc(32, 7).toString("base64")]) {
            const run = askNearby(key, failing());
            expect(await run.permission.catch((error: unknown) => error)).to.equal(away);
            expect(run.mayHaveRun).to.equal(false);
            expect(await run.start(5_000).catch((error: unknown) => error)).to.equal(away);
            askNearby(key, failing()).abandon();
          }
        await pause(300);
        expect(unhandled).to.deep.equal([]);
        expect(nearby.logs.join("\n"), "the chain is not to blame").not.to.contain("chain_unavailable");
        expect((await nearby.call("info", {})).pool).to.include({ busy: 0, queued: 0 });
      } finally {
        process.off("unhandledRejection", note);
      }
    });
  });

  describe("from a compromised relayer", () => {
    const start = `${NOT_BEFORE}{"limitMs":5000}`;

    it("does not run for a key that the contract does not know or permit, even when marked as paid", async () => {
      const before_ = await ranLines();
      const nowhere = await account.addUsageKey([]);
      const revoked = await account.addUsageKey([1]);
      await account.write("removeUsageApiKey", [account.id, revoked.id]);
      for (const key of [nowhere.key, revoked.key, Buffer.alloc(32, 9).toString("base64")]) {
        expect((await inParts(`${line(asked(key))}${start}`, "")).status).to.be.oneOf([401, 403]);
        expect((await executor.ask("run", { ...asked(key), limitMs: 5_000 })).status).to.be.oneOf([401, 403]);
      }
      expect(await ranLines()).to.equal(before_);
    });

    it("is refused when it includes an account, a key's state or a permission of its own", async () => {
      const before_ = await ranLines();
      const nowhere = await account.addUsageKey([]);
      const { key: state } = (await inParts(line(asked(account.key)), start)).lines[0] ?? {};
      for (const more of [
        { key: state },
        { accountId: account.id },
        { permitted: true },
        { account: account.id, keyId: account.id },
      ]) {
        const { status, lines } = await inParts(line({ ...asked(nowhere.key), ...more }), start);
        expect([status, lines[0]], JSON.stringify(more))
          .to.deep.include(422)
          .and.have.nested.property("[1].code", "invalid_body");
      }
      expect(await ranLines()).to.equal(before_ + 1);
    });

    it("gains nothing by naming a block: an old one is ignored, an unknown one stops its own run only", async () => {
      const revoked = await account.addUsageKey([1]);
      await account.write("removeUsageApiKey", [account.id, revoked.id]);
      expect((await refusal(ask(revoked.key, { notBefore: Promise.resolve(1) }).permission)).code).to.equal(
        "unknown_key",
      );
      const future = refusal(ask(account.key, { notBefore: Promise.resolve(1_000_000) }).permission);
      expect((await ask(account.key).start(5_000)).response).to.equal('"hello"');
      expect((await future).code).to.equal("chain_unavailable");
      expect((await ask(account.key).start(5_000)).response).to.equal('"hello"');
    });
  });
});
