/** `Idempotency-Key`: executed once, answered twice, secrets shown once. */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { Api, NO_PERMISSIONS, codeOf, members, newApiAccount, type HttpAnswer } from "../../support/http";
import { useApiAccount, useStack } from "../../support/stack";

const CODE = "async function main() { console.log('ran'); return 'answer'; }";

describe("Idempotency-Key", function () {
  this.timeout(60_000);
  const stack = useStack();
  const account = useApiAccount();
  before(async () => {
    await account().api.must("/add_group", { group_name: "g", group_description: "" });
  });

  const post = (path: string, body: unknown, key: string, api: Api = account().api): Promise<HttpAnswer> =>
    api.post(path, body, { headers: { "idempotency-key": key } });
  const groups = async (): Promise<string> =>
    String((await account().api.get("/list_groups?page_size=1")).headers["x-total-count"]);
  const balance = async (): Promise<unknown> => members(await account().api.get("/billing/balance"))["balance_cents"];
  const newGroup = (name: string) => ({ group_name: name, group_description: "" });

  it("the same request gets the first answer, is executed once and charged once", async () => {
    const [key, before, credit] = [randomUUID(), Number(await groups()), Number(await balance())];
    const first = await post("/add_group", newGroup("once"), key);
    const second = await post("/add_group", newGroup("once"), key);
    expect([first.status, second.status]).to.deep.equal([200, 200]);
    expect(second.body).to.deep.equal(first.body);
    expect([Number(await groups()), Number(await balance())]).to.deep.equal([before + 1, credit - 1]);
  });

  it("another request with the same key is 409, also on the same route with other path parameters", async () => {
    const key = randomUUID();
    expect((await post("/add_group", newGroup("a"), key)).status).to.equal(200);
    expect(codeOf(await post("/add_group", newGroup("b"), key))).to.equal("idempotency_conflict");
    const members_ = { add: ["QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX"] };
    const other = randomUUID();
    expect((await post("/groups/1/actions", members_, other)).status).to.equal(200);
    expect(codeOf(await post("/groups/2/actions", members_, other))).to.equal("idempotency_conflict");
  });

  it("is scoped to the route and to the caller", async () => {
    const key = randomUUID();
    const stranger = await newApiAccount(stack().baseUrl);
    expect((await post("/add_group", newGroup("mine"), key)).status).to.equal(200);
    const theirs = await post("/add_group", newGroup("theirs"), key, stranger.api);
    expect([theirs.status, members(theirs)["group_id"]]).to.deep.equal([200, "1"]);
    expect((await post("/create_wallet", {}, key)).status).to.equal(200);
  });

  it("of many concurrent requests one executes, the others wait or get its answer", async () => {
    const [key, before] = [randomUUID(), Number(await groups())];
    const answers = await Promise.all(Array.from({ length: 12 }, () => post("/add_group", newGroup("race"), key)));
    const codes = answers.map((answer) => (answer.status === 200 ? members(answer)["group_id"] : codeOf(answer)));
    const ids = new Set(codes.filter((code) => code !== "idempotency_in_progress"));
    expect(ids.size).to.equal(1);
    expect(answers.find(({ status }) => status === 409)?.headers["retry-after"] ?? "1").to.match(/^\d+$/);
    expect(Number(await groups())).to.equal(before + 1);
    expect(members(await post("/add_group", newGroup("race"), key))["group_id"]).to.equal([...ids][0]);
  });

  it("a refusal without effect is not stored: the same key may be used for the corrected request", async () => {
    const key = randomUUID();
    expect((await post("/remove_group", { group_id: 9_999 }, key)).status).to.equal(404);
    expect((await post("/add_group", { group_name: 1 }, key)).status).to.equal(422);
    const poor = randomUUID();
    const { usage_api_key: capped } = await account().api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      can_create_groups: true,
      balance: 1,
    });
    const api = account().api.with(String(capped));
    expect((await post("/add_group", newGroup("first"), randomUUID(), api)).status).to.equal(200);
    expect(codeOf(await post("/add_group", newGroup("second"), poor, api))).to.equal("key_cap_spent");
    await account().api.must("/update_usage_api_key", {
      usage_api_key: capped,
      ...NO_PERMISSIONS,
      can_create_groups: true,
      balance: 5,
    });
    expect((await post("/add_group", newGroup("second"), poor, api)).status, "paid for now").to.equal(200);
  });

  it("a secret is in the first answer only", async () => {
    const key = randomUUID();
    const first = members(await post("/add_usage_api_key", NO_PERMISSIONS, key));
    const second = members(await post("/add_usage_api_key", NO_PERMISSIONS, key));
    expect(first["usage_api_key"]).to.match(/=$/);
    const { usage_api_key: _, ...rest } = first;
    expect(second).to.deep.equal({ ...rest, secret_returned_before: true });
  });

  it("a new account is created once per address and key", async () => {
    const [key, body] = [randomUUID(), { account_name: "once", account_description: randomUUID() }];
    const stranger = new Api(stack().baseUrl);
    const [first, second] = [
      members(await post("/new_account", body, key, stranger)),
      members(await post("/new_account", body, key, stranger)),
    ];
    expect(first["api_key"]).to.be.a("string");
    expect(second)
      .to.include({ api_key_hash: first["api_key_hash"], secret_returned_before: true })
      .and.not.have.property("api_key");
    expect((await account().api.with(String(first["api_key"])).get("/account_exists")).body).to.equal(true);
  });

  it("a secret whose answer was lost is returned again to a request that asks, for accounts and keys", async () => {
    const key = randomUUID();
    const first = members(await post("/add_usage_api_key", NO_PERMISSIONS, key));
    expect(members(await post("/add_usage_api_key?secret=again", NO_PERMISSIONS, key))).to.deep.equal(first);
    const credit = await balance();
    expect(members(await post("/add_usage_api_key?secret=again", NO_PERMISSIONS, key))).to.deep.equal(first);
    expect(await balance()).to.equal(credit);
    const [stranger, body] = [new Api(stack().baseUrl), { account_name: "lost", account_description: key }];
    const made = members(await post("/new_account", body, key, stranger));
    expect(made["api_key"]).to.match(/=$/);
    expect(members(await post("/new_account?secret=again", body, key, stranger))).to.deep.equal(made);
    const other = await post("/new_account?secret=again", { ...body, account_name: "x" }, key, stranger);
    expect(codeOf(other)).to.equal("idempotency_conflict");
    const guessable = { ...body, account_name: "guessable" };
    await post("/new_account", guessable, `order-${key.slice(0, 8)}`, stranger);
    expect(members(await post("/new_account?secret=again", guessable, `order-${key.slice(0, 8)}`, stranger)))
      .to.include({ secret_returned_before: true })
      .and.not.have.property("api_key");
    const elsewhere = await newApiAccount(stack().baseUrl);
    const theirs = members(await post("/add_usage_api_key?secret=again", NO_PERMISSIONS, key, elsewhere.api));
    expect(theirs["api_key_hash"], "a key of their own").to.be.a("string").and.not.equal(first["api_key_hash"]);
  });

  it("a run is executed once: the second answer has its cost and receipt, and not its result", async () => {
    const cid = (await account().api.post("/get_lit_action_ipfs_id", CODE)).body;
    await account().api.must("/add_action_to_group", { group_id: 1, action_ipfs_cid: cid });
    const key = randomUUID();
    const first = await post("/run_action", { code: CODE }, key);
    expect(members(first)).to.include({ response: "answer", has_error: false });
    const credit = await balance();
    const second = await post("/run_action", { code: CODE }, key);
    expect([second.status, codeOf(second)]).to.deep.equal([409, "already_ran"]);
    expect(members(second)["usage"]).to.deep.equal(members(first)["usage"]);
    const receipt = first.headers["keywright-receipt"];
    expect(receipt).to.be.a("string");
    expect([second.headers["keywright-receipt"], members(second)["receipt"]]).to.deep.equal([receipt, receipt]);
    expect(second.text).to.not.include('answer"').and.not.include("ran\\n");
    expect(await balance()).to.equal(credit);
  });

  it("the aliases of a route share its keys", async () => {
    const key = randomUUID();
    expect((await post("/lit_action", { code: CODE }, key)).status).to.equal(200);
    expect(codeOf(await post("/run_action", { code: CODE }, key))).to.equal("already_ran");
  });

  it("the deprecated GET /create_wallet supports it", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const [first, second] = [
      await account().api.get("/create_wallet", { headers }),
      await account().api.get("/create_wallet", { headers }),
    ];
    expect(members(first)["wallet_address"]).to.be.a("string").and.to.equal(members(second)["wallet_address"]);
    expect(first.headers["cache-control"]).to.include("no-store");
  });

  it("still works after a transfer of the account: the write that ended the key is still answered", async () => {
    const leaving = await newApiAccount(stack().baseUrl);
    const key = randomUUID();
    const body = { new_owner_address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" };
    const first = await post("/transfer_ownership", body, key, leaving.api);
    expect((await post("/transfer_ownership", body, key, leaving.api)).body).to.deep.equal(first.body);
    expect(codeOf(await post("/transfer_ownership", body, randomUUID(), leaving.api))).to.equal(
      "account_chain_secured",
    );
  });

  it("of an invalid length is 400; routes that write nothing ignore it", async () => {
    expect((await post("/add_group", newGroup("x"), "k".repeat(256))).status).to.equal(400);
    expect((await post("/add_group", newGroup("x"), "")).status).to.equal(400);
    expect(
      (await account().api.get("/list_groups", { headers: { "idempotency-key": "k".repeat(300) } })).status,
    ).to.equal(200);
  });
});
