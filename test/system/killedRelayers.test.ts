/**
 * kill -9 of a relayer at every step of a write, with another one on the same PostgreSQL: real processes, real
 * executor, real ledger. Afterwards the client repeats its request with the same idempotency key through the survivor:
 * each has exactly one effect and is charged once.
 */
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent, request } from "undici";
import { startProcess, waitUntil, type ManagedProcess } from "../../scripts/dev/processes";
import { freePort } from "../../scripts/dev/ports";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { AccountManager__factory } from "../../typechain-types";
import { JsonRpcProvider } from "ethers";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { eventually } from "../support/chainBed";
import { RpcProxy } from "../support/rpcProxy";

const ROOT = join(__dirname, "..", "..");
const LEASE_MS = 15_000;
/** How many relayers start beside each other. */
const AT_ONCE = 2;

/** A proxy between a relayer and the executor that holds a call forever, before or after the executor sees it. */
class SocketProxy {
  reached = false;
  readonly #agent: Agent;
  readonly #server: Server;

  private constructor(
    target: string,
    readonly path: string,
    hold: { path: string; after: boolean } | undefined,
  ) {
    this.#agent = new Agent({ connect: { socketPath: target } });
    this.#server = createServer(async (incoming, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const isHeld = incoming.url === hold?.path;
      if (isHeld) this.reached = true;
      if (isHeld && !hold?.after) return;
      const headers = { "content-type": "application/json" };
      const { statusCode, body } = await request(`http://executor${incoming.url}`, {
        method: "POST",
        dispatcher: this.#agent,
        headers,
        body: Buffer.concat(chunks),
      });
      const text = await body.text();
      if (!isHeld) response.writeHead(statusCode, headers).end(text);
    });
  }

  static async start(target: string, path: string, hold?: { path: string; after: boolean }): Promise<SocketProxy> {
    const proxy = new SocketProxy(target, path, hold);
    proxy.#server.listen(path);
    await once(proxy.#server, "listening");
    return proxy;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await this.#agent.destroy();
  }
}

interface Step {
  readonly name: string;
  /** Whether the write is stored by then, so that the survivor continues it without a request. */
  readonly writtenDown: boolean;
  readonly rpc?: { readonly method: string; readonly after: boolean };
  readonly executor?: { readonly path: string; readonly after: boolean };
}

const STEPS: readonly Step[] = [
  { name: "while it simulates", writtenDown: false, rpc: { method: "eth_estimateGas", after: false } },
  {
    name: "with its price reserved, before the write is authorised",
    writtenDown: false,
    executor: { path: "/authorize-writes", after: false },
  },
  { name: "with the write authorised", writtenDown: false, executor: { path: "/authorize-writes", after: true } },
  { name: "with a nonce, before the signature", writtenDown: true, executor: { path: "/sign/write", after: false } },
  { name: "after the signature", writtenDown: true, executor: { path: "/sign/write", after: true } },
  {
    name: "before the node has the transaction",
    writtenDown: true,
    rpc: { method: "eth_sendRawTransaction", after: false },
  },
  { name: "after the node took it", writtenDown: true, rpc: { method: "eth_sendRawTransaction", after: true } },
  { name: "before it has the receipt", writtenDown: true, rpc: { method: "eth_getTransactionReceipt", after: false } },
];

interface Victim {
  readonly step: Step;
  readonly apiKey: string;
  readonly accountId: string;
  readonly process: ManagedProcess;
  readonly url: string;
  readonly rpc: RpcProxy;
  readonly socket: SocketProxy;
  reached: boolean;
}

describe("relayers killed during a write", function () {
  this.timeout(180_000);
  let postgres: TestPostgres;
  let databaseUrl: string;
  let stack: Stack;
  let provider: JsonRpcProvider;
  let folder: string;
  const victims: Victim[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "killed-"));
    postgres = await startPostgres();
    databaseUrl = await postgres.database("killed");
    stack = await startStack({ payerCount: 2, env: { DATABASE_URL: databaseUrl } });
    provider = new JsonRpcProvider(stack.rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
    for (let first = 0; first < STEPS.length; first += AT_ONCE)
      victims.push(...(await Promise.all(STEPS.slice(first, first + AT_ONCE).map(startVictim))));
  });

  after(async () => {
    for (const { process, rpc, socket } of victims) {
      await process.stop();
      await rpc.stop();
      await socket.stop();
    }
    provider?.destroy();
    await stack?.stop();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const headersOf = ({ apiKey, step }: Pick<Victim, "apiKey" | "step">): Record<string, string> => ({
    "content-type": "application/json",
    "x-api-key": apiKey,
    "idempotency-key": step.name,
  });

  async function startVictim(step: Step): Promise<Victim> {
    const rpc = await RpcProxy.start(stack.rpcUrl);
    const socket = await SocketProxy.start(
      stack.executorSocket,
      join(folder, `${STEPS.indexOf(step)}.sock`),
      step.executor,
    );
    const port = await freePort();
    const env = {
      PATH: process.env.PATH,
      NODE_ENV: "development",
      RPC_URLS: rpc.url,
      CHAIN_ID: "31337",
      CONTRACT_ADDRESS: stack.contractAddress,
      EXECUTOR_SOCKET: socket.path,
      DATABASE_URL: databaseUrl,
      PORT: String(port),
      METRICS_PORT: String(await freePort()),
      PAYER_COUNT: "2",
    };
    const relayer = startProcess({
      name: step.name,
      command: process.execPath,
      args: [join(ROOT, "dist", "relayer", "main.js")],
      env,
      onLine: () => undefined,
    });
    const url = `http://127.0.0.1:${port}`;
    await waitUntil("a relayer", async () => (await fetch(`${url}/ready`)).ok, {
      timeoutMs: 30_000,
      died: relayer.died,
    });
    const account = await post(
      stack.baseUrl,
      "new_account",
      { "content-type": "application/json" },
      { account_name: step.name, account_description: "" },
    );
    const { api_key: apiKey, api_key_hash: accountId } = account as { api_key: string; api_key_hash: string };
    return { step, apiKey, accountId, process: relayer, url, rpc, socket, reached: false };
  }

  async function post(baseUrl: string, route: string, headers: Record<string, string>, body: object): Promise<unknown> {
    const response = await fetch(`${baseUrl}/core/v1/${route}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(answer));
    return answer;
  }

  async function groupCount({ accountId }: Victim): Promise<number> {
    const contract = AccountManager__factory.connect(stack.contractAddress, provider);
    return Number((await contract.getAccount(accountId)).groupCount);
  }

  async function credit(victim: Victim): Promise<Record<string, unknown>> {
    const response = await fetch(`${stack.baseUrl}/core/v1/billing/balance`, { headers: headersOf(victim) });
    return (await response.json()) as Record<string, unknown>;
  }

  /** Sends the write and returns once the victim is paused at its step. */
  async function strike(victim: Victim): Promise<void> {
    const { rpc: held } = victim.step;
    if (held !== undefined) {
      victim.rpc.injectTimes(1, held.method, async (_call, forward) => {
        if (held.after) await forward();
        victim.reached = true;
        return new Promise(() => undefined);
      });
    }
    post(victim.url, "add_group", headersOf(victim), { group_name: "once", group_description: "" }).catch(
      () => undefined,
    );
    await eventually(`it stands still ${victim.step.name}`, () => victim.reached || victim.socket.reached);
    victim.process.child.kill("SIGKILL");
  }

  it("leaves all pending work to the survivor", async () => {
    for (const victim of victims) await strike(victim);
    for (const victim of victims.filter(({ step }) => step.writtenDown)) {
      await eventually(
        `the write killed ${victim.step.name} lands`,
        async () => (await groupCount(victim)) === 1,
        LEASE_MS + 20_000,
      );
    }
    for (const victim of victims) {
      const isJudged = async (): Promise<boolean> => (await credit(victim)).reserved_cents === 0;
      await eventually(`nothing is held for the write killed ${victim.step.name}`, isJudged, LEASE_MS + 20_000);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    for (const victim of victims)
      expect(await groupCount(victim), victim.step.name).to.equal(victim.step.writtenDown ? 1 : 0);
  });

  for (const step of STEPS) {
    it(`has exactly one effect and one charge, killed ${step.name} and repeated`, async () => {
      const victim = victims.find((one) => one.step === step) as Victim;
      const answer = (await post(stack.baseUrl, "add_group", headersOf(victim), {
        group_name: "once",
        group_description: "",
      })) as { group_id: string };
      expect(answer.group_id).to.equal("1");
      expect(await groupCount(victim)).to.equal(1);
      expect(await credit(victim)).to.include({ balance_cents: 1_999, reserved_cents: 0 });
    });
  }

  it("leaves the lanes advancing and without a gap", async () => {
    for (const victim of victims) {
      await post(
        stack.baseUrl,
        "add_group",
        { ...headersOf(victim), "idempotency-key": "after" },
        { group_name: "after", group_description: "" },
      );
    }
    const metrics = await (await fetch(stack.metricsUrl)).text();
    expect(metrics).not.to.match(/submissions_open\{state="\w+"\} [1-9]/);
  });
});
