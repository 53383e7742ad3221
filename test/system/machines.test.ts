/**
 * Three machines, each with its own relayer and executor, on one PostgreSQL behind HAProxy. No result depends on which
 * of them answers, and a machine that dies under load loses only its requests in progress.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { Pool } from "undici";
import { createClient, type Client } from "../../client";
import { openStore, type Store } from "../../relayer/store/index";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { startBalancer, TAG_HEADER, type Balancer } from "../support/balancer";
import { expectBalancedBooks } from "../support/books";
import { TooLate } from "../support/inTime";
import { expectSigned, HELLO, makeAccount, makeGroup, SIGN, type TestAccount } from "../support/journey";
import { Machine } from "../support/machines";

const WRITERS = 5;
const RUNNERS = 2;
const KEY_PER_SECOND = 30;
/** Between two operations of one account under load: below its key's rate limit on any machine. */
const PAUSE_MS = 60;
const ENV = {
  RATE_LIMIT_MINTS_PER_MINUTE: "1000",
  RATE_LIMIT_KEY_PER_SECOND: String(KEY_PER_SECOND),
  POOL_SIZE: "2",
  SANDBOX_MEMORY_MIB: "1024",
};
const RECOVERS_WITHIN_MS = 40_000;

interface Answer {
  readonly tag: string;
  readonly startedAt: number;
  readonly status: number;
  readonly body: Record<string, unknown>;
  /** Of a list. */
  readonly total: number;
}

describe("three machines on one PostgreSQL", function () {
  this.timeout(180_000);
  let postgres: TestPostgres;
  let stack: Stack;
  let machines: readonly Machine[];
  let balancer: Balancer;
  let http: Pool;
  let store: Store;

  before(async () => {
    postgres = await startPostgres();
    const databaseUrl = await postgres.database("machines");
    // The stack's own pair provides chain, contract and payers, and is one of the three.
    stack = await startStack({ env: { DATABASE_URL: databaseUrl, ...ENV } });
    const options = { stack, databaseUrl, env: ENV };
    machines = await Promise.all(["second", "third"].map((name) => Machine.start(name, options)));
    balancer = await startBalancer([{ name: "first", port: Number(new URL(stack.baseUrl).port) }, ...machines]);
    http = new Pool(balancer.baseUrl, { connections: 64 });
    store = await openStore({ databaseUrl });
  });
  after(async () => {
    await http?.close();
    await balancer?.stop();
    for (const machine of machines ?? []) await machine.stop();
    await stack?.stop();
    await store?.close();
    await postgres?.stop();
  });
  afterEach(() => expectBalancedBooks(store.db));

  const urls = (): readonly string[] => [stack.baseUrl, ...machines.map(({ baseUrl }) => baseUrl)];
  const throughEach = (apiKey: string): Client[] => urls().map((baseUrl) => createClient({ baseUrl, apiKey }));

  /** `tag` is the request's name in the balancer's log; a repeated write keeps its idempotency key. */
  async function ask(
    apiKey: string,
    method: "GET" | "POST",
    path: string,
    tag: string,
    body?: object,
    idempotencyKey = tag,
  ): Promise<Answer> {
    const startedAt = Date.now();
    const headers = {
      "x-api-key": apiKey,
      [TAG_HEADER]: tag,
      ...(body === undefined ? {} : { "content-type": "application/json", "idempotency-key": idempotencyKey }),
    };
    const request = {
      path: `/core/v1/${path}`,
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    };
    // A separate connection: the balancer may close an idle one just when it is used.
    const answered = await http.request({ ...request, reset: true }).catch((error: Error) => error);
    if (answered instanceof Error) return { tag, startedAt, status: 0, body: { text: answered.message }, total: NaN };
    const { statusCode: status, headers: given, body: stream } = answered;
    const text = await stream.text();
    // The balancer's own errors are HTML pages.
    const json = String(given["content-type"]).includes("json")
      ? (JSON.parse(text) as Record<string, unknown>)
      : { text };
    return { tag, startedAt, status, body: json, total: Number(given["x-total-count"]) };
  }

  it("sign with the same keys, and see each other's writes in the very next request", async () => {
    const account = await makeAccount(balancer.baseUrl);
    const { pkp } = await makeGroup(account.client, SIGN);
    for (const client of throughEach(account.apiKey)) await expectSigned(client, pkp);
    let expected = 1;
    for (let round = 0; round < 2; round++) {
      const clients = throughEach(account.apiKey);
      for (const [index, client] of clients.entries()) {
        await client.addGroup({ group_name: `group ${expected}`, group_description: "" });
        expected += 1;
        expect((await (clients[(index + 1) % clients.length] as Client).listGroups()).total).to.equal(expected);
      }
    }
  });

  it("run code by its CID that was uploaded through another machine, and keep it despite refused runs", async () => {
    const account = await makeAccount(balancer.baseUrl);
    const code = `${HELLO} // ${randomUUID()}`;
    const { cid } = await makeGroup(account.client, code);
    const [first, second, third] = throughEach(account.apiKey) as [Client, Client, Client];
    await first.runAction({ code, js_params: { name: "A" } });
    for (const client of [second, third]) {
      const { response } = await client.runAction({ action_ipfs_cid: cid, js_params: { name: "B" } });
      expect(response).to.equal("hello B");
    }
    const stranger = await makeAccount(balancer.baseUrl);
    const asked = throughEach(stranger.apiKey)[2] as Client;
    expect(await asked.runAction({ action_ipfs_cid: cid }).catch((error: { code: string }) => error.code)).to.equal(
      "no_execute_scope",
    );
  });

  it("apply one rate limit to a key, wherever its requests go", async () => {
    const account = await makeAccount(balancer.baseUrl);
    const started = Date.now();
    const answers = await Promise.all(
      Array.from({ length: 10 * KEY_PER_SECOND }, (_, index) =>
        ask(account.apiKey, "GET", "billing/balance", `rate-${index}`),
      ),
    );
    // One window is open already, and each second begins another.
    const windows = Math.floor((Date.now() - started) / 1000) + 2;
    const passed = answers.filter(({ status }) => status === 200).length;
    expect(answers.filter(({ status }) => status !== 200 && status !== 429)).to.deep.equal([]);
    expect(passed).to.be.within(0.9 * KEY_PER_SECOND, windows * KEY_PER_SECOND);
  });

  it("lose only requests in progress when a machine is killed under load, twice", async () => {
    const accounts = await Promise.all(Array.from({ length: WRITERS + RUNNERS }, () => makeAccount(balancer.baseUrl)));
    const cids = await Promise.all(
      accounts.slice(WRITERS).map(async ({ client }) => (await makeGroup(client, HELLO)).cid),
    );
    const failed: Answer[] = [];
    const kills: { readonly machine: string; readonly at: number }[] = [];
    let isOver = false;

    /** Sequential writes; each is repeated under its own name until it is answered, and then read from any machine. */
    const write = async ({ apiKey }: TestAccount, index: number): Promise<number> => {
      let written = 0;
      for (; !isOver; written++) {
        const tag = `write-${index}-${written}`;
        const body = { group_name: `group ${written}`, group_description: "" };
        let answer = await ask(apiKey, "POST", "add_group", tag, body);
        if (answer.status !== 200) failed.push(answer);
        const deadline = Date.now() + RECOVERS_WITHIN_MS;
        for (let time = 1; answer.status !== 200; time++) {
          if (Date.now() > deadline) throw new TooLate(`${tag} was never answered: ${JSON.stringify(answer.body)}`);
          await sleep(200);
          answer = await ask(apiKey, "POST", "add_group", `${tag}-${time}`, body, tag);
        }
        expect(answer.body.group_id, tag).to.equal(String(written + 1));
        const list = await ask(apiKey, "GET", "list_groups", `read-${index}-${written}`);
        if (list.status === 200) expect(list.total, tag).to.equal(written + 1);
        else failed.push(list);
        await sleep(PAUSE_MS);
      }
      return written;
    };

    /** Runs by code and by CID alternately. */
    const run = async ({ apiKey }: TestAccount, index: number): Promise<number> => {
      let ran = 0;
      for (let turn = 0; !isOver; turn++) {
        const named = turn % 2 === 0 ? { code: HELLO } : { action_ipfs_cid: cids[index] };
        const answer = await ask(apiKey, "POST", "run_action", `run-${index}-${turn}`, {
          ...named,
          js_params: { name: "x" },
        });
        if (answer.status === 200) ran += 1;
        else failed.push(answer);
        await sleep(PAUSE_MS);
      }
      return ran;
    };

    const writing = Promise.all(accounts.slice(0, WRITERS).map(write));
    const running = Promise.all(accounts.slice(WRITERS).map(run));
    const kill = async (machine: Machine): Promise<void> => {
      await sleep(1_500);
      // A connection may have delivered a request until the process was gone.
      await machine.kill();
      kills.push({ machine: machine.name, at: Date.now() });
      await sleep(1_500);
    };
    const [second, third] = machines as [Machine, Machine];
    await kill(second);
    await second.start();
    await kill(third);
    await sleep(500);
    isOver = true;
    const [written, ran] = await Promise.all([writing, running]);

    const failures = failed.map((answer) => ({ ...answer, machine: balancer.machineOf(answer.tag) }));
    const innocent = failures.filter(
      ({ machine, startedAt }) => !kills.some((kill) => kill.machine === machine && startedAt <= kill.at),
    );
    expect(innocent, "failed requests that were not in progress on a killed machine").to.deep.equal([]);
    expect(Math.min(...written, ...ran), "writes of each account, and runs of each, went on").to.be.at.least(3);
    for (const [index, { client }] of accounts.slice(0, WRITERS).entries()) {
      expect((await client.listGroups()).total, `groups of account ${index}`).to.equal(written[index]);
    }
    await third.start();
    const deadline = Date.now() + RECOVERS_WITHIN_MS;
    for (const [index, { client }] of accounts.entries()) {
      while ((await client.balance()).reserved_cents > 0 && Date.now() < deadline) await sleep(200);
      const { balance_cents: balance, reserved_cents: reserved } = await client.balance();
      expect(reserved, `account ${index} has reserved`).to.equal(0);
      // A run settled just before the kill is charged, though its answer was lost.
      const lost = index < WRITERS ? 0 : failed.filter(({ tag }) => tag.startsWith(`run-${index - WRITERS}-`)).length;
      const answered = index < WRITERS ? (written[index] as number) : 3 + (ran[index - WRITERS] as number);
      expect(balance, `account ${index} has left`).to.be.within(2_000 - answered - lost, 2_000 - answered);
    }
  });
});
