/**
 * SIGTERM: no new connections, requests in progress are answered; and the answer to a write with an unknown outcome.
 */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { startStack, type Stack } from "../../../scripts/dev/stack";
import { eventually } from "../../support/chainBed";
import { deep } from "../../support/counts";
import { Api, NO_PERMISSIONS, codeOf, members, newApiAccount, send, type ApiAccount } from "../../support/http";

const SLEEP =
  "async function main({ ms }) { await new Promise((resolve) => setTimeout(resolve, ms)); return 'slept'; }";

describe("a relayer that is stopped", function () {
  this.timeout(180_000);
  let stack: Stack;
  let account: ApiAccount;

  before(async () => {
    stack = await startStack({ env: { DRAIN_NOTICE_SECONDS: "2" } });
    account = await newApiAccount(stack.baseUrl);
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    await account.api.must("/add_action_to_group", {
      group_id: 1,
      action_ipfs_cid: (await account.api.post("/get_lit_action_ipfs_id", SLEEP)).body,
    });
  });
  after(() => stack?.stop());

  it("answers open requests, settles them, and restarts with its full state", async () => {
    // Longer than the notice.
    const under = account.api.post("/run_action", { code: SLEEP, js_params: { ms: 3_500 } });
    await new Promise((resolve) => setTimeout(resolve, 500));
    const restarted = stack.restart("relayer");
    expect(members(await under)).to.include({ response: "slept", has_error: false });
    await restarted;
    expect((await send(`${stack.baseUrl}/ready`)).status).to.equal(200);
    expect((await account.api.get("/account_exists")).body).to.equal(true);
  });

  it("fails /ready first, while it still serves, and then waits as long as a write may take", async () => {
    account = await newApiAccount(stack.baseUrl);
    const rpc = (method: string, ...params: unknown[]) =>
      send(stack.rpcUrl, { method: "POST", body: { jsonrpc: "2.0", id: 1, method, params } });
    await rpc("evm_setIntervalMining", 0);
    await rpc("evm_setAutomine", false);
    const writing = account.api.post("/add_group", { group_name: "under way", group_description: "" });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const restarted = stack.restart("relayer");
    await eventually("/ready says no", async () => (await send(`${stack.baseUrl}/ready`)).status === 503, 1_500);
    const ready = await send(`${stack.baseUrl}/ready`);
    expect([ready.status, ready.text]).to.deep.equal([
      503,
      ready.text.includes("shutting down") ? ready.text : "…shutting down…",
    ]);
    expect((await send(`${stack.baseUrl}/health`)).status, "it runs").to.equal(200);
    expect((await account.api.get("/list_groups")).status, "a new request on a new connection is served").to.equal(200);
    await eventually(
      "connections are refused",
      async () => (await send(`${stack.baseUrl}/health`).catch(() => undefined)) === undefined,
      6_000,
    );
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await rpc("evm_setAutomine", true);
    await rpc("anvil_mine", "0x1");
    const written = await writing;
    expect(written.status, `a write that took longer than the notice: ${written.text}`).to.equal(200);
    await restarted;
    expect((await account.api.get("/list_groups")).headers["x-total-count"]).to.equal("1");
  });

  // The relayer waits half a minute before it reports an unknown outcome.
  const it504 = (name: string, test: () => Promise<void>): unknown => deep && it(name, test);
  it504(
    "a write that is not mined in time is 504 with its submission; asked for again it is the same write, and its " +
      "secret is not lost",
    async () => {
      const rpc = (method: string, ...params: unknown[]) =>
        send(stack.rpcUrl, { method: "POST", body: { jsonrpc: "2.0", id: 1, method, params } });
      const headers = { "idempotency-key": randomUUID() };
      await rpc("evm_setIntervalMining", 0);
      await rpc("evm_setAutomine", false);
      const pending = await account.api.post("/add_usage_api_key", NO_PERMISSIONS, { headers });
      expect([pending.status, codeOf(pending)]).to.deep.equal([504, "submission_pending"]);
      expect(pending.headers["retry-after"]).to.match(/^\d+$/);
      expect(members(pending)["api_key_hash"]).to.match(/^0x[0-9a-f]{64}$/);
      expect(pending.text).to.not.include('usage_api_key"');
      const path = `/submissions/${String(members(pending)["submission_id"])}`;
      expect(members(await account.api.get(path))["state"]).to.be.oneOf(["signed", "sent"]);
      expect((await new Api(stack.baseUrl).get(path)).status, "a stranger").to.equal(401);
      const stranger = await rpc("evm_setAutomine", true).then(() => newApiAccount(stack.baseUrl));
      expect((await stranger.api.get(path)).status, "another account").to.equal(404);
      const again = await account.api.post("/add_usage_api_key", NO_PERMISSIONS, { headers });
      expect(again.status, again.text).to.equal(200);
      expect(members(again)).to.include({ api_key_hash: members(pending)["api_key_hash"] });
      expect(members(again)["usage_api_key"]).to.be.a("string");
      expect((await account.api.get("/list_api_keys")).headers["x-total-count"]).to.equal("1");
      expect(members(await account.api.get(path))["state"]).to.be.oneOf(["mined", "confirmed"]);
    },
  );
});
