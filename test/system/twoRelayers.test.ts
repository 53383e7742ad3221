/** Two relayers behind one service: one chain, one executor, one PostgreSQL. Balances are the same through either. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Wallet, solidityPackedKeccak256 } from "ethers";
import { createClient, type Client } from "../../client";
import { openStore, type Store } from "../../relayer/store/index";
import { freePort } from "../../scripts/dev/ports";
import { startProcess, waitUntil, type ManagedProcess } from "../../scripts/dev/processes";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { expectBalancedBooks } from "../support/books";
import { relayNonce, signedForward } from "../support/forwards";
import { Api } from "../support/http";
import { HELLO, makeAccount, makeGroup, type TestAccount } from "../support/journey";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";

const SIGNUP_CENTS = 20;

describe("two relayers on one PostgreSQL", function () {
  this.timeout(120_000);
  let postgres: TestPostgres;
  let databaseUrl: string;
  let stack: Stack;
  let second: { readonly baseUrl: string; readonly process: ManagedProcess };
  let store: Store;
  let account: TestAccount;
  /** The same account through either relayer. */
  let clients: [Client, Client];

  before(async () => {
    postgres = await startPostgres();
    databaseUrl = await postgres.database("shared");
    stack = await startStack({ env: { DATABASE_URL: databaseUrl, SIGNUP_CREDIT_CENTS: String(SIGNUP_CENTS) } });
    second = await startSecond(stack, databaseUrl);
    store = await openStore({ databaseUrl });
  });
  after(async () => {
    await second?.process.stop();
    await stack?.stop();
    await store?.close();
    await postgres?.stop();
  });
  beforeEach(async () => {
    account = await makeAccount(stack.baseUrl);
    clients = [account.client, createClient({ baseUrl: second.baseUrl, apiKey: account.apiKey })];
  });
  afterEach(() => expectBalancedBooks(store.db));

  const through = (index: number): Client => clients[index % 2] as Client;
  const ok = <T>(outcomes: PromiseSettledResult<T>[]): T[] =>
    outcomes.filter((one) => one.status === "fulfilled").map((one) => one.value);
  const codes = (outcomes: PromiseSettledResult<unknown>[]): Set<unknown> =>
    new Set(outcomes.filter((one) => one.status === "rejected").map((one) => (one.reason as { code?: string }).code));

  it("let forty parallel runs drain the last cents to exactly zero", async () => {
    await makeGroup(account.client, HELLO);
    const { balance_cents: left } = await account.client.balance();
    const runs = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) =>
        through(index).runAction({ code: HELLO, js_params: { name: String(index) }, timeout_ms: 1000 }),
      ),
    );
    expect(ok(runs).reduce((sum, { usage }) => sum + usage.cost_cents, 0)).to.equal(left);
    expect(ok(runs)).to.have.length(left);
    expect(codes(runs)).to.deep.equal(new Set(["insufficient_credit"]));
    for (const client of clients) expect(await client.balance()).to.include({ balance_cents: 0, reserved_cents: 0 });
  });

  it("credit a payment once that both confirm fifty times while its webhook arrives", async () => {
    const { payment_intent_id: intent, client_secret: secret } = await account.client.createPaymentIntent({
      amount_cents: 700,
    });
    expect(secret).to.be.a("string");
    await fetch(`${stack.stripeUrl}/v1/payment_intents/${intent}/confirm`, {
      method: "POST",
      headers: { authorization: "Bearer sk_test_any" },
      body: new URLSearchParams({ payment_method: "pm_card_visa" }),
    });
    const confirmed = await Promise.all(
      Array.from({ length: 50 }, (_, index) => through(index).confirmPayment({ payment_intent_id: intent })),
    );
    expect(confirmed.filter((one) => one.already_credited !== true).length).to.be.at.most(1);
    for (const client of clients) expect((await client.balance()).balance_cents).to.equal(SIGNUP_CENTS + 700);
  });

  it(
    "charge writes of one account that go through both concurrently, each once, and execute all " + "that were paid",
    async () => {
      const writes = await Promise.allSettled(
        Array.from({ length: 30 }, (_, index) =>
          through(index).addGroup({ group_name: `group ${index}`, group_description: "" }),
        ),
      );
      expect(ok(writes)).to.have.length(SIGNUP_CENTS);
      expect(codes(writes)).to.deep.equal(new Set(["insufficient_credit"]));
      expect(new Set(ok(writes).map(({ group_id: id }) => id)).size).to.equal(SIGNUP_CENTS);
      expect((await account.client.listGroups()).total).to.equal(SIGNUP_CENTS);
      expect(await account.client.balance()).to.include({ balance_cents: 0, reserved_cents: 0 });
    },
  );

  it("relay the same signed request once when both get it concurrently, and both answer it", async () => {
    const [owner, one, two] = [Wallet.createRandom(), new Api(stack.baseUrl), new Api(second.baseUrl)];
    const accountId = solidityPackedKeccak256(["address"], [owner.address]);
    const made = await one.post("/relay", await signedForward(one, owner, "newChainSecuredAccount", ["mine", ""]));
    expect(made.status, made.text).to.equal(200);
    const balance = async (): Promise<string> =>
      (
        await store.db
          .selectFrom("credit_accounts")
          .select("balance_cents")
          .where("account_id", "=", accountId)
          .executeTakeFirstOrThrow()
      ).balance_cents.toString();
    const before = Number(await balance());
    const same = await signedForward(one, owner, "addGroup", [accountId, "once", "", [], []]);
    const answers = await Promise.all([one, two, one, two, two, one].map((api) => api.post("/relay", same)));
    expect(answers.map(({ status, text }) => [status, text])).to.deep.equal(answers.map(() => [200, answers[0]?.text]));
    expect(before - Number(await balance()), "paid once").to.equal(1);
    expect(await relayNonce(two, owner)).to.equal("2");
  });

  it("release the reservation of a killed one, and not that of the live one", async () => {
    await makeGroup(account.client, HELLO);
    const sleeper = "async function main() { await new Promise((done) => setTimeout(done, 3000)); return 1; }";
    await account.client.addActionToGroup({
      group_id: "1",
      action_ipfs_cid: await account.client.getActionIpfsId(sleeper),
    });
    const { balance_cents: start } = await account.client.balance();
    const dying = clients[1].runAction({ code: sleeper, timeout_ms: 5000 }).catch(() => undefined);
    const living = clients[0].runAction({ code: sleeper, timeout_ms: 6000 });
    while ((await clients[0].balance()).reserved_cents < 11) await sleep(20);
    second.process.child.kill("SIGKILL");
    await dying;
    // A dead process on the same machine is detected at once: its reservation may be released any moment, the live
    // one's stays.
    let isLiving = true;
    const run = living.finally(() => (isLiving = false));
    const held: number[] = [];
    while (isLiving) {
      const { reserved_cents: reserved } = await clients[0].balance();
      if (isLiving) held.push(reserved);
      await sleep(100);
    }
    expect(Math.min(...held), "the live one's reservation").to.be.at.least(6);
    const { usage } = await run;
    const deadline = Date.now() + 30_000;
    while ((await clients[0].balance()).reserved_cents > 0 && Date.now() < deadline) await sleep(200);
    expect(await clients[0].balance()).to.include({ balance_cents: start - usage.cost_cents, reserved_cents: 0 });
  });
});

async function startSecond(stack: Stack, databaseUrl: string): Promise<{ baseUrl: string; process: ManagedProcess }> {
  const port = await freePort();
  const { chainId, contractAddress } = stack.deployment;
  const env = {
    PATH: process.env.PATH,
    NODE_ENV: "development",
    PORT: String(port),
    METRICS_PORT: String(await freePort()),
    RPC_URLS: stack.rpcUrl,
    CHAIN_ID: String(chainId),
    CONTRACT_ADDRESS: contractAddress,
    EXECUTOR_SOCKET: stack.executorSocket,
    DATABASE_URL: databaseUrl,
    SIGNUP_CREDIT_CENTS: String(SIGNUP_CENTS),
    STRIPE_API_BASE: stack.stripeUrl,
    STRIPE_SECRET_KEY: "sk_test_second",
    STRIPE_PUBLISHABLE_KEY: "pk_test_second",
    STRIPE_WEBHOOK_SECRET: "whsec_development",
  };
  const main = join(__dirname, "..", "..", "dist", "relayer", "main.js");
  const second = startProcess({
    name: "second relayer",
    command: process.execPath,
    args: [main],
    env,
    onLine: () => undefined,
  });
  const baseUrl = `http://127.0.0.1:${port}`;
  await waitUntil("the second relayer", async () => (await fetch(`${baseUrl}/ready`)).ok, {
    timeoutMs: 60_000,
    died: second.died,
  });
  return { baseUrl, process: second };
}
