/** Runs over HTTP: valid requests, refusals with their reasons, charges. */
import { expect } from "chai";
import { callExecutor } from "../../../scripts/dev/payers";
import { NO_PERMISSIONS, codeOf, members, newApiAccount, type ApiAccount, type HttpAnswer } from "../../support/http";
import { itInTime, TooLate } from "../../support/inTime";
import { useStack } from "../../support/stack";

const ECHO = "async function main(params) { return params; }";
const TEXT = "Actions.setResponse({ response: jsParams.text });";
const SLEEP =
  "async function main({ ms }) { await new Promise((resolve) => setTimeout(resolve, ms)); return 'slept'; }";
const LOOP = "async function main({ ms }) { for (const end = Date.now() + ms; Date.now() < end; ); }";
const THROW = "async function main() { console.log('before'); throw new TypeError('no such luck'); }";

describe("runs over HTTP", function () {
  this.timeout(60_000);
  const stack = useStack();
  let account: ApiAccount;
  let cids: string[];

  const run = (body: unknown, api = account.api): Promise<HttpAnswer> => api.post("/run_action", body);
  const credit = async (): Promise<number> =>
    Number(members(await account.api.get("/billing/balance"))["balance_cents"]);

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    await account.api.must("/create_wallet", {});
    await account.api.must("/add_group", { group_name: "g", group_description: "", pkp_ids_permitted: [1] });
    cids = await Promise.all(
      [ECHO, SLEEP, THROW, TEXT, LOOP].map(async (code) =>
        String((await account.api.post("/get_lit_action_ipfs_id", code)).body),
      ),
    );
    await account.api.must("/groups/1/actions", { add: cids });
  });

  it("accept code, or its CID once it has run, under each of its names", async () => {
    expect(members(await run({ code: ECHO, js_params: { a: [1, "42", null] } }))).to.deep.include({
      response: { a: [1, "42", null] },
      has_error: false,
      logs: "",
    });
    for (const field of ["action_ipfs_cid", "ipfs_id"])
      expect(members(await run({ [field]: cids[0], js_params: { n: 1 } }))["response"], field).to.deep.equal({ n: 1 });
    const alias = await account.api.post("/lit_action", { code: ECHO, js_params: null });
    expect(members(alias)["response"]).to.deep.equal({});
    // Of both, older programs mean the code; empty text is none.
    for (const body of [
      { code: ECHO, ipfs_id: cids[1] },
      { code: "", ipfs_id: cids[0] },
    ])
      expect(
        members(await account.api.post("/lit_action", { ...body, js_params: { n: 2 } }))["response"],
      ).to.deep.equal({ n: 2 });
  });

  it("return an object set as JSON text, as older programs do, under the older route only", async () => {
    const responseAs = async (path: string, text: string): Promise<unknown> =>
      members(await account.api.post(path, { code: TEXT, js_params: { text } }))["response"];
    for (const value of [{ signature: "0x12", __proto__: null }, [1, { a: "42" }]]) {
      expect(await responseAs("/lit_action", JSON.stringify(value))).to.deep.equal(JSON.parse(JSON.stringify(value)));
      expect(await responseAs("/run_action", JSON.stringify(value))).to.equal(JSON.stringify(value));
    }
    for (const text of ["42", "null", '"a"', "{ not JSON", "[".repeat(50_000)])
      expect(await responseAs("/lit_action", text), text.slice(0, 9)).to.equal(text);
    const deep = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;
    expect((await account.api.post("/lit_action", { code: TEXT, js_params: { text: deep } })).status).to.equal(200);
  });

  it("require exactly one of code and CID, and params that are an object", async () => {
    for (const body of [
      {},
      { code: ECHO, ipfs_id: cids[0] },
      { action_ipfs_cid: cids[0], ipfs_id: cids[0] },
      { code: ECHO, js_params: [1] },
      { code: ECHO, js_params: "x" },
    ]) {
      expect([(await run(body)).status, codeOf(await run(body))], JSON.stringify(body)).to.deep.equal([
        422,
        "invalid_body",
      ]);
    }
  });

  it("pass params on unchanged, __proto__ included, without setting a prototype", async () => {
    const code = "async function main(p) { return [Object.keys(p), ({}).polluted ?? null]; }";
    await account.api.must("/groups/1/actions", {
      add: [(await account.api.post("/get_lit_action_ipfs_id", code)).body],
    });
    const again = await account.api.post(
      "/run_action",
      Buffer.from(`{"code":${JSON.stringify(code)},"js_params":{"__proto__":{"polluted":1},"b":2}}`),
    );
    const [keys, polluted] = members(again)["response"] as [string[], unknown];
    expect(keys).to.include("b");
    expect(polluted).to.equal(null);
  });

  it("that are refused name the failed check of key, group, action and PKP, and cost nothing", async () => {
    const before = await credit();
    const other = await newApiAccount(stack().baseUrl);
    const bare = await run({ code: ECHO }, other.api);
    expect([bare.status, codeOf(bare), members(bare)["failed"]]).to.deep.equal([403, "no_execute_scope", "group"]);
    expect(members(bare)["detail"])
      .to.match(/add_group/)
      .and.not.match(/execute_in_groups/);
    const { wallet_address: foreign } = await other.api.must("/create_wallet", {});
    const powerless = account.api.with(
      String((await account.api.must("/add_usage_api_key", NO_PERMISSIONS))["usage_api_key"]),
    );
    const idle = await run({ code: ECHO }, powerless);
    expect(members(idle)["detail"]).to.match(/execute_in_groups/);
    const refusals: [HttpAnswer, number, string, string][] = [
      [await run({ code: "1" }), 403, "action_not_permitted", "action"],
      [idle, 403, "no_execute_scope", "group"],
      [await run({ code: ECHO, pkp_id: foreign }), 403, "pkp_not_permitted", "pkp"],
      [
        await run({ action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" }),
        403,
        "action_not_permitted",
        "action",
      ],
    ];
    for (const [answer, status, code, failed] of refusals)
      expect([answer.status, codeOf(answer), members(answer)["failed"]]).to.deep.equal([status, code, failed]);
    expect(codeOf(await run({ code: ECHO, pkp_id: 99 }))).to.equal("unknown_pkp_number");
    expect(await credit(), "only the key was paid for").to.equal(before - 1);
  });

  it("that fail are 200 with has_error, keep their logs and are charged", async () => {
    const before = await credit();
    const answer = members(await run({ code: THROW }));
    expect(answer).to.include({ has_error: true, logs: "before\n", response: null });
    expect(answer["error"]).to.include({ code: "threw" });
    expect(members(await run({ code: THROW }))["usage"]).to.include({ cost_cents: 1 });
    expect(await credit()).to.equal(before - 2);
  });

  it("that never begin, because the code does not parse, give the position and are free", async () => {
    const broken = "async function main() { return 1 +; }";
    const cid = (await account.api.post("/get_lit_action_ipfs_id", broken)).body;
    await account.api.must("/groups/1/actions", { add: [cid] });
    const before = await credit();
    const answer = members(await run({ code: broken }));
    expect(answer["error"]).to.include({ code: "invalid_code" });
    expect(answer["usage"]).to.include({ cost_cents: 0 });
    expect(await credit()).to.equal(before);
  });

  it("that never begin are charged from the sixth in a minute on, since each takes a child", async () => {
    const broken = "async function main() { return 2 +; }";
    const cid = (await account.api.post("/get_lit_action_ipfs_id", broken)).body;
    await account.api.must("/groups/1/actions", { add: [cid] });
    const costs: unknown[] = [];
    // A minute may begin meanwhile, and then one more.
    for (let i = 0; i < 16; i++) {
      const { cost_cents: cents } = members(await run({ code: broken }))["usage"] as { cost_cents: number };
      costs.push(cents);
    }
    expect(costs.filter((cents) => cents === 1)).to.have.lengthOf.at.least(1);
    expect(costs.slice(0, 6)).to.include(0);
  });

  it("that never begin are charged when parsing took longer than a quarter of a second", async () => {
    const broken = `${"/(?<a>x)(?<b>y)(?<c>z)/u;".repeat(220_000)}=`;
    await account.api.must("/groups/1/actions", {
      add: [(await account.api.post("/get_lit_action_ipfs_id", broken)).body],
    });
    const answer = members(await run({ code: broken }));
    expect(["invalid_code", "limit_exceeded"]).to.include((answer["error"] as { code: string }).code);
    const { duration_ms: ms, cost_cents: cents } = answer["usage"] as { duration_ms: number; cost_cents: number };
    expect(ms).to.be.above(250);
    expect(cents).to.equal(Math.ceil(ms / 1_000));
  });

  it("are ended by timeout_ms and charged by the started second", async () => {
    const answer = members(await run({ code: SLEEP, js_params: { ms: 5_000 }, timeout_ms: 1_900 }));
    expect(answer["error"]).to.include({ code: "timed_out" });
    expect(answer["usage"]).to.include({ limit_ms: 1_900, cost_cents: 2 });
  });

  it("cannot last longer than the credit pays for", async () => {
    const made = await account.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      execute_in_groups: [0],
      balance: 1,
    });
    const capped = account.api.with(String(made["usage_api_key"]));
    const first = members(await run({ code: SLEEP, js_params: { ms: 1 } }, capped));
    expect(first["usage"]).to.include({ limit_ms: 1_000, cost_cents: 1 });
    const second = await run({ code: SLEEP, js_params: { ms: 1 } }, capped);
    expect([second.status, codeOf(second)]).to.deep.equal([402, "key_cap_spent"]);
    const listed = (await account.api.get("/list_api_keys?page_size=1000")).body as {
      id: string;
      spent_cents: number;
    }[];
    expect(listed.find(({ id }) => id === made["api_key_hash"])?.spent_cents).to.equal(1);
  });

  itInTime("continue and are charged when the client disconnects", async () => {
    const before = await credit();
    const left = AbortSignal.timeout(400);
    const url = `${stack().baseUrl}/core/v1/run_action`;
    const body = JSON.stringify({ code: SLEEP, js_params: { ms: 1_300 } });
    const gone = await fetch(url, {
      method: "POST",
      headers: { "x-api-key": account.key, "content-type": "application/json" },
      body,
      signal: left,
    }).catch((error: Error) => error.name);
    expect(gone).to.be.oneOf(["TimeoutError", "AbortError"]);
    for (let tries = 0; tries < 60 && (await credit()) !== before - 2; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    if ((await credit()) === before) throw new TooLate("the run had not begun when the client left");
    expect(members(await account.api.get("/billing/balance"))).to.include({
      balance_cents: before - 2,
      reserved_cents: 0,
    });
  });

  it("that wait for a place leave the queue when their client has gone, and cost nothing", async () => {
    const send = (ms: number, signal?: AbortSignal): Promise<unknown> =>
      fetch(`${stack().baseUrl}/core/v1/run_action`, {
        method: "POST",
        headers: { "x-api-key": account.key, "content-type": "application/json" },
        body: JSON.stringify({ code: LOOP, js_params: { ms } }),
        ...(signal && { signal }),
      }).catch(() => "gone");
    const before = await credit();
    const { pool } = await callExecutor(stack().executorSocket, "info", {});
    const busy = Array.from({ length: pool.size }, () => send(4_000));
    await new Promise((resolve) => setTimeout(resolve, 800));
    const gone = AbortSignal.timeout(500);
    await Promise.all(Array.from({ length: 5 }, () => send(900_000, gone)));
    await Promise.all(busy);
    for (let tries = 0; tries < 60; tries++) {
      if (members(await account.api.get("/billing/balance"))["reserved_cents"] === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const { balance_cents: after, reserved_cents: reserved } = members(await account.api.get("/billing/balance"));
    expect(reserved).to.equal(0);
    expect(before - Number(after), "those that ran, of some seconds each").to.be.within(4, pool.size * 8);
    expect((await callExecutor(stack().executorSocket, "info", {})).pool).to.include({ busy: 0, queued: 0 });
  }).timeout(60_000);

  it("with js_params of 128 KiB are accepted, of one byte more 413", async () => {
    const params = (bytes: number) => ({ a: "x".repeat(bytes - '{"a":""}'.length) });
    expect((await run({ code: ECHO, js_params: params(131_072) })).status).to.equal(200);
    expect(codeOf(await run({ code: ECHO, js_params: params(131_073) }))).to.equal("params_too_large");
  });
});
