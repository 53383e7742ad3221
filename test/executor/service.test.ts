/** The keyholder as a process: its socket, its logs, its shutdown, and what remains after a stop and after a kill. */
import { expect } from "chai";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { spawnSync } from "node:child_process";
import { request } from "undici";
import { eventually } from "../support/chainBed";
import { needs } from "../support/needs";
import { TEST_ROOT } from "../support/rootKey";
import { TestAccount, TestChain, TestExecutor, registerPayers } from "../support/executor";

/** The log is flushed in batches. */
const LOG_FLUSH_MS = 300;
const HELLO = `async function main() { return "hello"; }`;
const ENDLESS = `async function main() { for (;;); }`;
const SLOW = `async function main({ ms }) { await new Promise((resolve) => setTimeout(resolve, ms)); return "done"; }`;

/** Every descendant of `pid`, from /proc. */
function descendants(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((entry) => /^[0-9]+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]));
    } catch {
      // It exited meanwhile.
    }
  }
  const below = (ancestor: number): number[] =>
    [...parents].filter(([, parent]) => parent === ancestor).flatMap(([child]) => [child, ...below(child)]);
  return below(pid);
}
const isAlive = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};
async function untilGone(pids: number[], withinMs: number): Promise<number[]> {
  const deadline = Date.now() + withinMs;
  while (pids.some(isAlive) && Date.now() < deadline) await sleep(20);
  return pids.filter(isAlive);
}

describe("the keyholder process", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let account: TestAccount;
  let folder: string;
  const rootKey = TEST_ROOT;

  before(async () => {
    chain = await TestChain.start();
    folder = mkdtempSync(join(tmpdir(), "keywright-service-"));
    executor = await TestExecutor.start(chain, { LOG_LEVEL: "trace", ROOT_KEY_FILE: join(folder, "root.key") });
    await registerPayers(chain, executor);
    account = await TestAccount.create(chain, executor);
    await account.addGroup(["any"], []);
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("listens on a socket that only its own user can open", () => {
    expect(statSync(executor.socketPath).mode & 0o777).to.equal(0o600);
  });

  it("opens the socket to its group when one is named", async () => {
    const grouped = await TestExecutor.start(chain, { EXECUTOR_SOCKET_GROUP: String(process.getgid?.() ?? 0) });
    expect(statSync(grouped.socketPath).mode & 0o777).to.equal(0o660);
    await grouped.stop();
  });

  it("answers malformed requests with what is wrong, and keeps running", async () => {
    const raw = async (method: "GET" | "POST", path: string, body: string): Promise<string> => {
      const { Agent } = await import("undici");
      const dispatcher = new Agent({ connect: { socketPath: executor.socketPath } });
      const answer = await request(`http://executor${path}`, {
        method,
        dispatcher,
        ...(method === "GET" ? {} : { body }),
      });
      const { code } = (await answer.body.json()) as { code: string };
      await dispatcher.close();
      return `${answer.statusCode} ${code}`;
    };
    expect(await raw("GET", "/run", "")).to.equal("405 method_not_allowed");
    expect(await raw("POST", "/elsewhere", "{}")).to.equal("404 route_not_found");
    expect(await raw("POST", "/run", "{")).to.equal("400 malformed_json");
    expect(await raw("POST", "/run", "[]")).to.equal("422 invalid_body");
    expect(await raw("POST", "/mint/account-key", `{"extra":1}`)).to.equal("422 invalid_body");
    expect(await raw("POST", "/payers", " ".repeat(5 * 2 ** 20))).to.equal("413 payload_too_large");
    const socket = connect(executor.socketPath);
    socket.end("no HTTP at all\r\n\r\n");
    await new Promise((resolve) => socket.once("close", resolve).resume());
    expect((await executor.call("ready", {})).ready).to.equal(true);
  });

  it("reports limits, sandbox level, pool and config document, without a secret", async () => {
    const info = await executor.call("info", {});
    expect(info).to.include({ chainId: "31337", tee: "none", privateKeysAllowed: true });
    expect(info.limits.keyOps).to.equal(100);
    expect(info.sandbox.level === "full").to.equal(info.sandbox.missing.length === 0);
    expect(info.pool.size).to.equal(2);
    expect(info.config).to.include({ chain_id: 31_337, key_namespace: info.keyNamespace });
    expect(await executor.codeOf("attestation", {})).to.equal("attestation_unavailable");
  });

  it("writes no secret of a caller or guest to its log, at any level", async () => {
    const canary = (place: string): string => `canary-${place}-${Math.random().toString(36).slice(2)}`;
    const places = Object.fromEntries(
      ["params", "code", "log", "error", "response", "token", "field", "cid", "typed"].map((place) => [
        place,
        canary(place),
      ]),
    );
    const code =
      `/* ${places.code} */ async function main({ secret }) { console.log("${places.log}", ` +
      "secret); throw new " +
      `Error("${places.error}"); }`;
    await executor.run(account.key, code, { secret: places.params });
    await executor.run(account.key, `async function main() { return "${places.response}"; }`);
    await executor.run(`${account.key}x`, code);
    await executor.ask("ownerWallet", { token: `${places.token}.e30.x` });
    await executor.ask("run", { [places.field ?? ""]: places.field, credential: { type: "key", key: account.key } });
    await executor.ask("run", {
      credential: { type: "key", key: account.key },
      cid: places.cid,
      params: "{}",
      limitMs: 1,
    });
    await executor.ask("mintPkpWithSignature", { typed_data: { types: places.typed }, signature: places.typed });
    await executor.ask("authorizeWrites", {
      writes: [
        {
          credential: { type: "key", key: account.key },
          write: { functionName: "removeGroup", args: [places.field ?? ""] },
        },
      ],
    });
    const { usageApiKey } = await executor.call("mintApiUsageKey", {});
    const { apiKey } = await executor.call("mintAccountKey", {});
    await sleep(LOG_FLUSH_MS);
    expect(executor.logs.join("\n")).to.contain("/run");
    const secrets = [
      ...Object.values(places),
      account.key,
      usageApiKey,
      apiKey,
      Buffer.from(account.key, "base64").toString("hex"),
      rootKey.toString("hex"),
      rootKey.toString("base64"),
    ];
    for (const secret of secrets) expect(executor.logs.join("\n")).to.not.contain(secret);
  });

  it("puts the caller's request id on its log lines", async () => {
    const { Agent } = await import("undici");
    const dispatcher = new Agent({ connect: { socketPath: executor.socketPath } });
    await (
      await request("http://executor/ready", {
        method: "POST",
        body: "{}",
        headers: { "x-request-id": "11112222-3333" },
        dispatcher,
      })
    ).body.dump();
    await dispatcher.close();
    await sleep(LOG_FLUSH_MS);
    const lines = executor.logs.filter((line) => line.includes("/ready") && line.includes("11112222-3333"));
    expect(lines.length).to.equal(1);
  });

  it("started as root isolates its children fully, its own socket and root key included", async function () {
    await needs(this, "root", "bubblewrap");
    expect((await executor.call("info", {})).sandbox).to.deep.equal({ level: "full", missing: [] });
  });

  it("opens no debugger when it is signalled to", async () => {
    executor.process.child.kill("SIGUSR1");
    const log = (): string => executor.logs.join("\n");
    for (let waits = 0; waits < 50 && !log().includes("allows no debugger"); waits++) await sleep(100);
    await sleep(LOG_FLUSH_MS);
    expect(log()).to.contain("allows no debugger").and.to.not.contain("Debugger listening");
  });

  it("ends a run whose caller disconnected, and serves the next", async () => {
    const gone = new AbortController();
    const run = executor
      .ask(
        "run",
        { credential: { type: "key", key: account.key }, code: SLOW, params: `{"ms":9000}`, limitMs: 10_000 },
        gone.signal,
      )
      .catch(() => "disconnected");
    await sleep(300);
    gone.abort();
    expect(await run).to.equal("disconnected");
    await eventually("its process is free", async () => (await executor.call("info", {})).pool.busy === 0, 5_000);
    expect((await executor.run(account.key, HELLO)).answer?.response).to.equal(`"hello"`);
  });

  it("refuses to start where another one listens, and reuses the socket of a killed one", async () => {
    const env = {
      PATH: process.env.PATH,
      RPC_URLS: chain.rpcUrl,
      CHAIN_ID: "31337",
      CONTRACT_ADDRESS: chain.contractAddress,
      EXECUTOR_SOCKET: executor.socketPath,
    };
    const second = spawnSync(process.execPath, [join(__dirname, "../../dist/executor/main.js")], {
      env,
      encoding: "utf8",
      timeout: 30_000,
    });
    expect(second.status).to.equal(1);
    expect(second.stdout).to.contain("another executor listens on");
    expect((await executor.call("ready", {})).ready).to.equal(true);
  });

  it("killed during runs leaves no process behind, and restarts with the same keys", async () => {
    const before = await executor.call("payers", { count: 2 });
    const pid = executor.process.child.pid ?? 0;
    const running = [ENDLESS, SLOW].map((code) =>
      executor.run(account.key, code, { ms: 9_000 }).catch(() => "cut off"),
    );
    // Until the children that replace the two have started, too.
    await sleep(1_500);
    const family = descendants(pid);
    expect(family.length).to.be.greaterThan(2);
    executor.process.child.kill("SIGKILL");
    expect(await Promise.all(running)).to.deep.equal(["cut off", "cut off"]);
    expect(await untilGone([pid, ...family], 3_000)).to.deep.equal([]);
    await executor.launch();
    expect(await executor.call("payers", { count: 2 })).to.deep.equal(before);
    expect((await executor.run(account.key, HELLO)).answer?.response).to.equal(`"hello"`);
  });

  it("asked to stop finishes the open run, takes no new one, and leaves neither process nor socket", async () => {
    const pid = executor.process.child.pid ?? 0;
    const family = descendants(pid);
    const open = executor.run(account.key, SLOW, { ms: 800 });
    await sleep(300);
    const exit = new Promise<number | null>((resolve) => executor.process.child.once("exit", resolve));
    const startedAt = Date.now();
    void executor.process.stop();
    await sleep(100);
    const late = await executor.run(account.key, HELLO).then(
      ({ refusal }) => refusal?.code,
      () => "refused",
    );
    expect(late).to.be.oneOf(["shutting_down", "refused"]);
    expect((await open).answer?.response).to.equal(`"done"`);
    expect(await exit).to.equal(0);
    expect(Date.now() - startedAt).to.be.lessThan(4_000);
    expect(await untilGone([pid, ...family], 500)).to.deep.equal([]);
    expect(existsSync(executor.socketPath)).to.equal(false);
  });
});
