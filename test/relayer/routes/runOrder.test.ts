/** The order of a run's checks, and its contract calls: one, by the executor, whose answer is the permission. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "chai";
import { freePort } from "../../../scripts/dev/ports";
import { startStack, type Stack } from "../../../scripts/dev/stack";
import { AccountManager__factory } from "../../../typechain-types";
import {
  NO_PERMISSIONS,
  codeOf,
  members,
  newApiAccount,
  send,
  type Api,
  type ApiAccount,
  type HttpAnswer,
} from "../../support/http";
import { RpcProxy } from "../../support/rpcProxy";
import { MIB } from "../../../protocol/limits";

const HELLO = "async function main() { return 'hello'; }";
const OTHER = "async function main() { return 'another'; }";
const SLEEPS = "async function main({ ms }) { await new Promise((woken) => setTimeout(woken, ms)); return 'slept'; }";
const SLEEP_MS = 10_000;
/** Four such bodies take all the memory for bodies. */
const PADDED_BYTES = 16 * MIB;
const UNLISTED = "async function main() { return 'in no group'; }";
const ABI = AccountManager__factory.createInterface();
const MULTICALL = ABI.getFunction("multicall").selector;
const ABOUT_KEYS: readonly string[] = [
  MULTICALL,
  ABI.getFunction("explainExecution").selector,
  ABI.getFunction("getKey").selector,
];
const KEY_REQUESTS_PER_SECOND = 40;

describe("the checks of a run, in order", function () {
  this.timeout(60_000);
  let stack: Stack;
  let proxy: RpcProxy;
  let account: ApiAccount;
  const cids: Record<string, string> = {};

  before(async () => {
    const port = await freePort();
    let starting: Promise<RpcProxy> | undefined;
    stack = await startStack({
      servicesRpcUrl: (url) => {
        starting = RpcProxy.startOn(url, port);
        return `http://127.0.0.1:${port}`;
      },
      env: {
        RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
        RATE_LIMIT_STRANGERS_PER_MINUTE: "1000000",
        RATE_LIMIT_KEY_PER_SECOND: String(KEY_REQUESTS_PER_SECOND),
      },
    });
    proxy = (await starting) as RpcProxy;
    account = await newApiAccount(stack.baseUrl);
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    for (const code of [HELLO, OTHER, SLEEPS])
      cids[code] = String((await account.api.post("/get_lit_action_ipfs_id", code)).body);
    await account.api.must("/groups/1/actions", { add: Object.values(cids) });
  });
  after(async () => {
    await stack?.stop();
    await proxy?.stop();
  });

  const run = (api: Api, code = HELLO, headers: Record<string, string> = {}): Promise<HttpAnswer> =>
    api.post("/run_action", { code }, { headers });
  const told = (answer: HttpAnswer): unknown[] => [
    answer.status,
    answer.status === 200 ? members(answer)["has_error"] : codeOf(answer),
  ];
  const raw = (api: Api, body: unknown): Promise<HttpAnswer> =>
    send(`${stack.baseUrl}/core/v1/run_action`, {
      method: "POST",
      key: String(api.key),
      headers: { "content-type": "application/json" },
      body,
    });
  const revoke = (key: string): Promise<unknown> => account.api.must("/remove_usage_api_key", { usage_api_key: key });

  /** A usage key that the relayer has cached. */
  async function knownKey(rights: object = {}): Promise<Api> {
    const made = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, execute_in_groups: [1], ...rights });
    const api = account.api.with(String(made["usage_api_key"]));
    expect((await api.get("/list_groups")).status).to.equal(200);
    return api;
  }

  /** The contract calls of an operation about keys and runs, by selector. */
  async function asked(work: () => Promise<unknown>): Promise<string[]> {
    const before_ = proxy.seen.length;
    await work();
    const calls = proxy.seen.slice(before_).filter(({ method }) => method === "eth_call");
    return calls
      .map(({ params }) => (params[0] as { data: string }).data.slice(0, 10))
      .filter((selector) => ABOUT_KEYS.includes(selector));
  }

  it("asks the contract once, for any caller", async () => {
    const bot = await knownKey();
    for (const api of [bot, account.api]) expect(await asked(() => run(api))).to.deep.equal([MULTICALL]);
    expect(await asked(() => run(bot, UNLISTED)), "of a run that is refused, too").to.deep.equal([MULTICALL]);
  });

  it("refuses a revoked key on its very next request, before any other error", async () => {
    const wrong = [
      Buffer.from("{"),
      { code: 1 },
      {},
      { code: UNLISTED },
      { code: HELLO, pkp_id: 77 },
      { code: HELLO, js_params: { a: "x".repeat(70_000) } },
    ];
    for (const body of [{ code: HELLO }, ...wrong]) {
      const bot = await knownKey();
      expect((await run(bot)).status).to.equal(200);
      await revoke(String(bot.key));
      const answer = await raw(bot, body);
      expect([...told(answer), members(answer)["failed"]]).to.deep.equal([401, "unknown_key", undefined]);
      expect(told(await raw(bot, body)), "and from then on").to.deep.equal([401, "unknown_key"]);
    }
  });

  it("checks syntax, then fields, then permission, then credit", async () => {
    const capped = await knownKey({ balance: 1 });
    expect(told(await run(capped))).to.deep.equal([200, false]);
    expect(told(await raw(capped, Buffer.from("{")))).to.deep.equal([400, "malformed_json"]);
    expect(told(await raw(capped, { code: UNLISTED, js_params: 1 }))).to.deep.equal([422, "invalid_body"]);
    expect(told(await run(capped, UNLISTED))).to.deep.equal([403, "action_not_permitted"]);
    expect(told(await run(capped))).to.deep.equal([402, "key_cap_spent"]);
  });

  it("applies the key's rate limit after the syntax, and before the permission", async () => {
    const bot = await knownKey();
    const flood = (body: unknown): Promise<HttpAnswer[]> =>
      Promise.all(Array.from({ length: 3 * KEY_REQUESTS_PER_SECOND }, () => raw(bot, body)));
    const codes = (answers: HttpAnswer[]): string[] =>
      [...new Set(answers.map((answer) => String(told(answer)[1])))].sort();
    expect(codes(await flood({ code: UNLISTED }))).to.deep.equal(["action_not_permitted", "rate_limited"]);
    expect(codes(await flood({}))).to.deep.equal(["invalid_body"]);
    await revoke(String(bot.key));
    expect(codes(await flood({ code: HELLO }))).to.deep.equal(["unknown_key"]);
  });

  it("checks the Idempotency-Key before permission, and stores no refusal under it", async () => {
    const bot = await knownKey();
    const [once, later] = [{ "idempotency-key": randomUUID() }, { "idempotency-key": randomUUID() }];
    expect(told(await run(bot, OTHER, once))).to.deep.equal([200, false]);
    await account.api.must("/groups/1/actions", { remove: [cids[OTHER]] });
    expect(told(await run(bot, OTHER, once))).to.deep.equal([409, "already_ran"]);
    expect(told(await run(bot, HELLO, once))).to.deep.equal([409, "idempotency_conflict"]);
    expect(told(await run(bot, OTHER, later))).to.deep.equal([403, "action_not_permitted"]);
    await account.api.must("/groups/1/actions", { add: [cids[OTHER]] });
    expect(told(await run(bot, OTHER, later))).to.deep.equal([200, false]);
    await revoke(String(bot.key));
    expect(told(await run(bot, OTHER, once))).to.deep.equal([401, "unknown_key"]);
  });

  it("charges and holds nothing for a refusal", async () => {
    const bot = await knownKey();
    const balance = async (): Promise<unknown> => (await account.api.get("/billing/balance")).body;
    const before_ = await balance();
    await Promise.all(Array.from({ length: 10 }, () => run(bot, UNLISTED)));
    expect(await balance()).to.deep.equal(before_);
  });

  it("reserves under what its key is and may at that moment, and holds nothing when it is refused", async () => {
    const bot = await knownKey({ balance: 0 });
    const update = (balance: number): Promise<unknown> =>
      account.api.must("/update_usage_api_key", {
        ...NO_PERMISSIONS,
        usage_api_key: bot.key,
        execute_in_groups: [1],
        balance,
      });
    const reserved = async (): Promise<unknown> => members(await account.api.get("/billing/balance"))["reserved_cents"];
    for (let time = 0; time < 2; time++) expect(told(await run(bot, OTHER))).to.deep.equal([200, false]);
    await update(1);
    expect([told(await run(bot, OTHER)), await reserved()]).to.deep.equal([[402, "key_cap_spent"], 0]);
    await update(100);
    expect([told(await run(bot, OTHER)), await reserved()]).to.deep.equal([[200, false], 0]);
    await update(60);
    expect([told(await run(bot, OTHER)), await reserved()]).to.deep.equal([[200, false], 0]);
    await account.api.must("/groups/1/actions", { remove: [cids[OTHER]] });
    expect([told(await run(bot, OTHER)), await reserved()]).to.deep.equal([[403, "action_not_permitted"], 0]);
    await account.api.must("/groups/1/actions", { add: [cids[OTHER]] });
    expect(told(await run(bot, OTHER))).to.deep.equal([200, false]);
    await revoke(String(bot.key));
    expect([told(await run(bot, OTHER)), await reserved()]).to.deep.equal([[401, "unknown_key"], 0]);
  });

  it("keeps no memory for a padded body while the run goes on", async () => {
    const padded = (params: object): Buffer =>
      Buffer.from(JSON.stringify({ code: SLEEPS, js_params: params }) + " ".repeat(PADDED_BYTES));
    const bots = await Promise.all(Array.from({ length: 3 }, () => knownKey()));
    for (const bot of bots) expect(told(await raw(bot, padded({ ms: 0 })))).to.deep.equal([200, false]);
    let asleep = 0;
    const sleeps = bots.flatMap((bot) => [1, 2].map(() => raw(bot, padded({ ms: SLEEP_MS })).finally(() => asleep--)));
    asleep = sleeps.length;
    await pause(SLEEP_MS / 2);
    expect(told(await raw(account.api, padded({ ms: 0 })))).to.deep.equal([200, false]);
    expect(asleep, "all that sleep were read before").to.equal(sleeps.length);
    for (const slept of await Promise.all(sleeps)) expect(told(slept)).to.deep.equal([200, false]);
  });

  it("sees its own answered writes, in any order", async () => {
    for (let turn = 0; turn < 3; turn++) {
      await account.api.must("/groups/1/actions", { remove: [cids[OTHER]] });
      expect(told(await run(account.api, OTHER))).to.deep.equal([403, "action_not_permitted"]);
      await account.api.must("/groups/1/actions", { add: [cids[OTHER]] });
      expect(told(await run(account.api, OTHER))).to.deep.equal([200, false]);
    }
  });
});
