/**
 * Webhooks of several relayers on one PostgreSQL that are killed (kill -9) again and again, with receivers that fail:
 * every run that was answered is told of at least once, nothing else is, and every message is signed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { verifyWebhook } from "../../client";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { eventually } from "../support/chainBed";
import { members, newApiAccount, type ApiAccount } from "../support/http";
import { Machine } from "../support/machines";
import { startReceiver, type Receiver } from "../support/webhookReceiver";

const RUNS = 40;
const KILLS = 3;
const ENV = { RATE_LIMIT_KEY_PER_SECOND: "1000", POOL_SIZE: "2", WEBHOOK_ALLOW_HOSTS: "127.0.0.1" };

describe("webhooks while relayers are killed", function () {
  this.timeout(180_000);
  let postgres: TestPostgres;
  let stack: Stack;
  let second: Machine;
  let account: ApiAccount;
  let receiver: Receiver;

  before(async () => {
    postgres = await startPostgres();
    const databaseUrl = await postgres.database("webhooks");
    stack = await startStack({ env: { DATABASE_URL: databaseUrl, ...ENV } });
    second = await Machine.start("second", { stack, databaseUrl, env: ENV });
    account = await newApiAccount(stack.baseUrl);
    receiver = await startReceiver();
  });
  after(async () => {
    await second?.stop();
    await stack?.stop();
    await receiver?.stop();
    await postgres?.stop();
  });

  it("lose nothing and invent nothing", async () => {
    const { api } = account;
    const { config } = (await (await fetch(`${stack.baseUrl}/info`)).json()) as { config: { statement_key: string } };
    const statementKey = config.statement_key;
    const anything = [`0x${"00".repeat(32)}`];
    await api.must("/add_group", { group_name: "any", group_description: "", cid_hashes_permitted: anything });
    // Each second message fails once, and each fifth a second time: it hangs, closes, or answers 500.
    const attempts = new Map<string, number>();
    receiver.answer((response, { id }) => {
      const number = (attempts.get(id) ?? 0) + 1;
      attempts.set(id, number);
      const nth = attempts.size;
      const isFailure = (number === 1 && nth % 2 === 0) || (number === 2 && nth % 5 === 0);
      if (!isFailure) return void response.writeHead(204).end();
      if (nth % 3 === 0) return;
      if (nth % 3 === 1) response.destroy();
      else response.writeHead(500).end();
    });
    await api.must("/webhooks", { url: receiver.url, events: ["run.*"] });
    const killing = (async () => {
      for (let kills = 0; kills < KILLS; kills++) {
        await sleep(1_500);
        await second.kill();
        await second.start();
      }
    })();
    const answered = new Set<string>();
    for (let n = 0; n < RUNS; n++) {
      const answer = await api.post("/run_action", { code: `async function main() { return ${n}; }` });
      if (answer.status === 200 && members(answer)["has_error"] !== true)
        answered.add(String(answer.headers["x-request-id"]));
      await sleep(100);
    }
    await killing;
    const told = (): Set<unknown> => new Set(receiver.received.map(({ data }) => data["request_id"]));
    await eventually("all runs are told of", () => [...answered].every((id) => told().has(id)), 90_000);
    expect(told().size).to.equal(RUNS);
    const runs = (await api.get("/list_runs?page_size=100")).body as { request_id: string }[];
    expect(new Set(runs.map(({ request_id: id }) => id))).to.deep.equal(told());
    expect(new Set(receiver.received.map(({ id }) => id)).size, "one message for each run").to.equal(RUNS);
    for (const { headers, body } of receiver.received)
      await verifyWebhook(headers as Record<string, string>, body, {
        ...{ statementKey, accountId: account.id, toleranceSeconds: 600 },
      });
  });
});
