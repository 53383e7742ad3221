/** Triggers against a whole stack: made, attached, fired by hand, by hooks and by events, in both modes. */
import { createHash, createHmac, randomUUID } from "node:crypto";
import { expect } from "chai";
import { Wallet } from "ethers";
import { createChainSecuredClient, createClient, type Answer } from "../../client";
import { triggerSteps } from "../../client/project/triggers";
import { verifyReceipt, verifyTriggerStatement } from "../../client/verify";
import { actionHashOf } from "../../protocol/ids";
import { cidOfCode } from "../../protocol/cid";
import { deployEmitter } from "../support/emitter";
import { NO_PERMISSIONS, codeOf, members, newApiAccount, send, type Api, type HttpAnswer } from "../support/http";
import { startReceiver } from "../support/webhookReceiver";
import { useApiAccount, useProvider, useStack } from "../support/stack";
import { eventually } from "../support/chainBed";

const ECHO = `async function main(params) { return params; }`;
const FAIL = `async function main() { throw new Error("no"); }`;
const HOURLY = { cron: "0 * * * *", time_zone: "Europe/Berlin" };
type Firing = Record<string, unknown>;

describe("triggers", function () {
  this.timeout(60_000);
  const stack = useStack();
  const account = useApiAccount();
  const provider = useProvider();
  const api = (): Api => account().api;

  before(async () => {
    await api().must("/add_group", {
      group_name: "triggered",
      group_description: "",
      cid_hashes_permitted: [actionHashOf(await cidOfCode(ECHO)), actionHashOf(await cidOfCode(FAIL))],
    });
  });

  const make = (body: object, code = ECHO) =>
    api().must("/triggers", { name: "t", code, params: { fixed: 1 }, ...body });
  const firingsOf = async (id: unknown): Promise<Firing[]> =>
    (await api().get(`/triggers/${String(id)}/firings`)).body as Firing[];
  const ended = async (id: unknown, count = 1): Promise<Firing[]> => {
    let all: Firing[] = [];
    await eventually(`${count} firings`, async () => {
      all = (await firingsOf(id)).filter(({ state }) => state === "ended");
      return all.length >= count;
    });
    return all;
  };
  const hook = (id: unknown, body: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> =>
    send(`${stack().baseUrl}/core/v1/hooks/${String(id)}`, { method: "POST", body, headers });

  it("makes one with an attached key of its own, lists it, pauses it, and deletes it with its key", async () => {
    const made = await make({ schedule: HOURLY, balance: 50 });
    expect(made).to.deep.include({ success: true, state: "active", kind: "schedule", failures: 0 });
    expect(Date.parse(String(made["next_due_at"])) % 3_600_000).to.equal(0);
    expect(made).not.to.have.any.keys("usage_api_key", "sealed", "params");
    const id = String(made["id"]);
    const keys = (await api().get("/list_api_keys")).body as Record<string, unknown>[];
    expect(keys.find((key) => key["api_key_hash"] === made["api_key_hash"])).to.include({ balance: "50" });
    expect(members(await api().get(`/triggers/${id}`))).to.deep.include({ schedule: { ...HOURLY, missed: "skip" } });
    expect(members(await api().post(`/triggers/${id}/update`, { paused: true, name: "u" }))).to.include({
      state: "paused",
      name: "u",
    });
    expect(members(await api().get(`/triggers/${id}`))).not.to.have.property("next_due_at");
    expect(members(await api().post(`/triggers/${id}/update`, { paused: false })).state).to.equal("active");
    const stranger = await newApiAccount(stack().baseUrl);
    expect(codeOf(await stranger.api.get(`/triggers/${id}`))).to.equal("trigger_not_found");
    expect(codeOf(await stranger.api.post(`/triggers/${id}/run`, {}))).to.equal("trigger_not_found");
    expect(await api().must(`/triggers/${id}/delete`, {})).to.include({ api_key_hash: made["api_key_hash"] });
    expect(codeOf(await api().get(`/triggers/${id}`))).to.equal("trigger_not_found");
    const left = (await api().get("/list_api_keys")).body as Record<string, unknown>[];
    expect(left.find((key) => key["api_key_hash"] === made["api_key_hash"])).to.equal(undefined);
  });

  it("says what is wrong with a request", async () => {
    const code = async (body: object): Promise<unknown> =>
      codeOf(await api().post("/triggers", { name: "t", ...body }));
    expect(await code({ code: ECHO })).to.equal("invalid_body");
    expect(await code({ schedule: HOURLY })).to.equal("invalid_body");
    expect(await code({ code: ECHO, schedule: HOURLY, hook: {} })).to.equal("invalid_body");
    expect(await code({ code: ECHO, schedule: { cron: "* * * * * *" } })).to.equal("invalid_value");
    expect(await code({ code: ECHO, schedule: { cron: "0 0 30 2 *" } })).to.equal("invalid_value");
    expect(await code({ code: ECHO, schedule: { ...HOURLY, time_zone: "Mars/Olympus" } })).to.equal("invalid_value");
    expect(await code({ code: ECHO, hook: { verification: "none", secret: "x".repeat(20) } })).to.equal(
      "invalid_value",
    );
    expect(await code({ code: ECHO, event: { address: "0x12" } })).to.equal("invalid_value");
  });

  it("answers a repeated request with the same trigger, and its secret only to one that asks for it", async () => {
    const headers = { "idempotency-key": randomUUID() };
    const body = { name: "t", code: ECHO, hook: { verification: "hmac" } };
    const [one, again] = [
      await api().post("/triggers", body, { headers }),
      await api().post("/triggers", body, { headers }),
    ];
    expect(members(again)["id"]).to.equal(members(one)["id"]);
    expect(members(one)["hook_secret"]).to.be.a("string");
    expect(members(again)).not.to.have.property("hook_secret");
    const asked = await api().post("/triggers?secret=again", body, { headers });
    expect(members(asked)).to.deep.equal(members(one));
    const guessable = { headers: { "idempotency-key": "once and once more" } };
    await api().post("/triggers", body, guessable);
    expect(members(await api().post("/triggers?secret=again", body, guessable))).not.to.have.property("hook_secret");
    expect(JSON.stringify((await api().get("/triggers")).body)).not.to.contain(String(members(one)["hook_secret"]));
  });

  it("runs now, recorded as a run of the trigger", async () => {
    const made = await make({ schedule: HOURLY });
    const fired = await api().must(`/triggers/${String(made["id"])}/run`, {});
    expect(fired).to.deep.include({ kind: "manual", state: "ended", outcome: "succeeded", cost_cents: 1 });
    expect(fired["response"]).to.deep.include({ fixed: 1 });
    const [run] = (await api().get(`/list_runs?api_key_hash=${String(made["api_key_hash"])}`)).body as Firing[];
    expect(run).to.include({ trigger_id: made["id"], request_id: fired["id"], outcome: "succeeded" });
  });

  it("is not paused by a key that may not run it, and runs within the cap of one that may", async () => {
    const made = await make({ schedule: HOURLY });
    const run = async (fields: object): Promise<() => Promise<HttpAnswer>> => {
      const key = await api().must("/add_usage_api_key", { ...NO_PERMISSIONS, ...fields });
      const by = api().with(String(key["usage_api_key"]));
      return () => by.post(`/triggers/${String(made["id"])}/run`, {});
    };
    const refused = await run({});
    for (let count = 0; count < 5; count += 1) expect(codeOf(await refused())).to.equal("not_authorized");
    const state = members(await api().get(`/triggers/${String(made["id"])}`));
    expect(state).to.include({ state: "active", failures: 0 });
    const allowed = await run({ execute_in_groups: ["0"], balance: 1 });
    expect(members(await allowed())).to.include({ outcome: "succeeded", cost_cents: 1 });
    expect(members(await allowed())).to.include({ outcome: "key_cap_spent" });
  });

  it("is made by a project with the code it runs, once, also after a deployment that broke off", async () => {
    const client = createClient({ baseUrl: stack().baseUrl, apiKey: account().key });
    const code = `async function main() { return ${Date.now()}; }`;
    const cid = await cidOfCode(code);
    await api().must("/add_group", {
      ...{ group_name: "project", group_description: "", cid_hashes_permitted: [actionHashOf(cid)] },
    });
    const call = (name: string, input: unknown): Promise<unknown> =>
      (client as unknown as Record<string, (input: unknown) => Promise<unknown>>)[name]?.(input) as Promise<unknown>;
    const built = [{ action: "report", file: "", code, cid, bytes: code.length }];
    const present = async (): Promise<Answer<"listTriggers">> =>
      (await client.listTriggers({ page_size: 1_000 })).items.filter(({ name }) => name === "of the project");
    const deploy = async (cron: string): Promise<number> => {
      const schedule = { cron, time_zone: "UTC", missed: "skip" as const };
      const triggers = { "of the project": { action: "report", params: {}, schedule } };
      const steps = triggerSteps(call, { config: { triggers } } as never, built, {
        triggers: await present(),
        ...{ keys: (await client.listApiKeys({ page_size: 1_000 })).items, groups: new Map() },
      });
      for (const { run } of steps) await run({ pkps: new Map(), groups: new Map() }, () => undefined);
      return steps.length;
    };
    expect(await deploy("0 0 1 1 *")).to.equal(1);
    expect(await deploy("0 0 1 1 *")).to.equal(0);
    const [first] = await present();
    expect(await client.runTrigger({ id: String(first?.id) })).to.include({ outcome: "succeeded" });
    await make({ name: "of the project", schedule: HOURLY });
    expect(await deploy("0 0 1 1 *"), "of an earlier one, which broke off").to.equal(1);
    expect((await present()).map(({ id }) => id)).to.deep.equal([first?.id]);
    expect(await deploy("0 0 2 1 *")).to.equal(2);
    expect((await present()).map(({ schedule }) => schedule?.cron)).to.deep.equal(["0 0 2 1 *"]);
  });

  it("fires by a hook: once for each message, with verified bodies only", async () => {
    const secret = "a secret of some length";
    const made = await make({ hook: { verification: "hmac", secret } });
    const id = made["id"];
    const body = Buffer.from(`{"tag":"v1.2.3"}`);
    const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
    const accepted = await hook(id, body, { "x-hub-signature-256": signature });
    expect(accepted.status).to.equal(200);
    expect((await ended(id))[0]).to.include({ id: members(accepted)["firing_id"], outcome: "succeeded", kind: "hook" });
    expect(codeOf(await hook(id, body, { "x-hub-signature-256": `sha256=${"0".repeat(64)}` }))).to.equal(
      "invalid_webhook_signature",
    );
    expect(codeOf(await hook("0".repeat(32), body))).to.equal("trigger_not_found");
    expect(codeOf(await hook(id, Buffer.alloc(40_000)))).to.equal("payload_too_large");
    await api().must(`/triggers/${String(id)}/update`, { paused: true });
    expect(codeOf(await hook(id, body, { "x-hub-signature-256": signature }))).to.equal("trigger_paused");
  });

  it("answers a hook with the run's response where its owner wants that", async () => {
    const made = await make({ hook: { respond: true } });
    const answer = members(await hook(made["id"], { tag: "v2" }));
    expect(answer).to.include({ success: true, outcome: "succeeded" });
    expect(answer["response"]).to.deep.include({ tag: "v2", fixed: 1 });
  });

  it("fires once for each log that fits", async () => {
    const signer = await provider().getSigner(3);
    const emitter = await deployEmitter(signer);
    const topic = `0x${"ab".repeat(32)}`;
    const made = await make({ event: { address: emitter.address, topics: [topic], confirmations: 1 } });
    await emitter.emit(`0x${"cd".repeat(32)}`, 1);
    const receipts = [await emitter.emit(topic, 2), await emitter.emit(topic, 3)];
    const firings = await ended(made["id"], 2);
    expect(firings.map(({ outcome }) => outcome)).to.deep.equal(["succeeded", "succeeded"]);
    expect(firings.map(({ cause }) => cause)).to.have.members(receipts.map(({ hash }) => `log:${hash}:0`));
  });

  it("pauses a trigger that fails again and again, with the reason", async () => {
    const made = await make({ hook: {} }, FAIL);
    for (let count = 1; count <= 5; count += 1) {
      expect((await hook(made["id"], {})).status).to.equal(200);
      await ended(made["id"], count);
    }
    const state = members(await api().get(`/triggers/${String(made["id"])}`));
    expect(state).to.include({ state: "paused", failures: 5, last_outcome: "threw" });
    expect(state["reason"]).to.contain("5 firings in a row failed");
  });

  it("tells webhooks of its runs and of its pause, charges each run and keeps its receipt", async () => {
    const own = await newApiAccount(stack().baseUrl);
    const receiver = await startReceiver();
    try {
      const cid_hashes_permitted = [ECHO, FAIL].map(async (code) => actionHashOf(await cidOfCode(code)));
      await own.api.must("/add_group", {
        ...{ group_name: "g", group_description: "" },
        cid_hashes_permitted: await Promise.all(cid_hashes_permitted),
      });
      await own.api.must("/webhooks", { url: receiver.url, events: ["run.*", "trigger.*"] });
      const balance = async (): Promise<number> =>
        Number(members(await own.api.get("/billing/balance"))["balance_cents"]);
      const made = await own.api.must("/triggers", { name: "t", code: ECHO, hook: { respond: true } });
      const before = await balance();
      const answered = members(await hook(made["id"], {}));
      const [firing] = (await own.api.get(`/triggers/${String(made["id"])}/firings`)).body as Firing[];
      expect(firing).to.include({ id: answered["firing_id"], outcome: "succeeded", cost_cents: 1 });
      expect(await balance()).to.equal(before - 1);
      const { config } = (await (await fetch(`${stack().baseUrl}/info`)).json()) as { config: Record<string, unknown> };
      const receipt = String(firing?.["receipt"]);
      const claims = await verifyReceipt(receipt, config);
      expect(claims).to.deep.include({ api_key_hash: made["api_key_hash"], account_id: own.id });
      expect(claims.trigger).to.deep.include({ id: made["id"] });
      const told = await receiver.next("run.succeeded");
      expect(told.data).to.include({
        ...{ trigger_id: made["id"], request_id: firing?.["id"], cost_cents: 1 },
        receipt_sha256: createHash("sha256").update(receipt).digest("hex"),
      });
      const failing = await own.api.must("/triggers", { name: "f", code: FAIL, hook: { respond: true } });
      for (let count = 1; count <= 5; count += 1) await hook(failing["id"], {});
      expect((await receiver.next("run.failed")).data).to.include({ trigger_id: failing["id"], outcome: "threw" });
      const paused = (await receiver.next("trigger.paused")).data;
      expect(paused["trigger_id"]).to.equal(failing["id"]);
      expect(paused["reason"]).to.equal(members(await own.api.get(`/triggers/${String(failing["id"])}`))["reason"]);
    } finally {
      await receiver.stop();
    }
  });

  it("is attached through the relay by a wallet without coin, in one multicall, its statement checked", async () => {
    const { baseUrl } = stack();
    const wallet = new Wallet(Wallet.createRandom().privateKey, provider());
    const owner = await createChainSecuredClient({ baseUrl, signer: wallet, gas: "service" });
    await owner.createAccount({ account_name: "w", account_description: "" });
    const cid = await cidOfCode(ECHO);
    const { group_id } = await owner.addGroup({
      ...{ group_name: "g", group_description: "" },
      cid_hashes_permitted: [actionHashOf(cid)],
    });
    const fields = { name: "w", code: ECHO, params: { a: 1 }, hook: { verification: "hmac" as const } };
    const { minted, write } = await owner.prepareTrigger({ ...fields, execute_in_groups: [group_id], balance: 25 });
    const { config } = (await (await fetch(`${baseUrl}/info`)).json()) as { config: Record<string, unknown> };
    const asked = { minted, accountId: owner.accountId, actionIpfsCid: cid, fields };
    await verifyTriggerStatement(asked, config);
    for (const other of [
      { fields: { ...fields, params: { a: 2 } } },
      { fields: { ...fields, hook: { verification: "none" as const } } },
      { actionIpfsCid: await cidOfCode(FAIL) },
      { minted: { ...minted, api_key_hash: `0x${"1".repeat(64)}` } },
      { minted: { ...minted, statement: minted.statement.replace(/.$/, (c) => (c === "A" ? "B" : "A")) } },
    ]) {
      const failure = await verifyTriggerStatement({ ...asked, ...other }, config).then(
        () => undefined,
        (error: Error) => error.message,
      );
      expect(failure, JSON.stringify(other)).to.match(/differs|did not sign|compact/);
    }
    const sent = await owner.send(write);
    const calls = (await provider().getTransactionReceipt(sent.transaction_hash))?.logs.length;
    expect(calls).to.be.at.least(2);
    await eventually("attached", async () => (await owner.getTrigger({ id: minted.id })).state === "active");
    const { items } = await owner.listApiKeys();
    const key = items.find(({ api_key_hash }) => api_key_hash === minted.api_key_hash);
    expect(key).to.deep.include({ balance: "25", execute_in_groups: [group_id], can_create_pkps: false });
    expect([
      await provider().getBalance(wallet.address),
      await provider().getTransactionCount(wallet.address),
    ]).to.deep.equal([0n, 0]);
    const body = `{"b":2}`;
    const signature = createHmac("sha256", String(minted.hook_secret)).update(body).digest("hex");
    expect((await hook(minted.id, Buffer.from(body), { "x-signature": signature })).status).to.equal(200);
    await eventually("fired", async () =>
      (await owner.listFirings({ id: minted.id })).items.some(({ outcome }) => outcome === "succeeded"),
    );
  });

  it("acts for a wallet's account once its owner has attached it, and no longer once revoked", async () => {
    const wallet = new Wallet(Wallet.createRandom().privateKey, provider());
    await provider().send("hardhat_setBalance", [wallet.address, "0x56bc75e2d63100000"]);
    const owner = await createChainSecuredClient({ baseUrl: stack().baseUrl, signer: wallet });
    await owner.createAccount({ account_name: "w", account_description: "" });
    await owner.addGroup({
      group_name: "g",
      group_description: "",
      cid_hashes_permitted: [actionHashOf(await cidOfCode(ECHO))],
    });
    let unattached: string | undefined;
    const made = await owner.createTrigger(
      { name: "w", code: ECHO, hook: { verification: "none" } },
      {
        onProgress: async (progress) => {
          if (progress.step !== "minted") return;
          unattached = progress.minted.state;
          expect(codeOf(await hook(progress.minted.id, {}))).to.equal("trigger_paused");
        },
      },
    );
    expect(unattached).to.equal("unattached");
    await eventually("attached", async () => (await owner.getTrigger({ id: made.id })).state === "active");
    expect((await hook(made.id, { n: 1 })).status).to.equal(200);
    await eventually("fired", async () =>
      (await owner.listFirings({ id: made.id })).items.some(({ outcome }) => outcome === "succeeded"),
    );
    // A service that lies has no other key revoked.
    const bot = await owner.createUsageKey({ ...NO_PERMISSIONS, name: "bot" });
    const { api_key_hash } = bot;
    const refused = await owner.deleteTrigger({ id: made.id, api_key_hash }).catch((error: unknown) => error);
    expect(refused).to.include({ code: "invalid_argument" });
    expect(String(refused)).to.include(`key ${api_key_hash}`).and.include("keywright key revoke");
    const keys = (await owner.listApiKeys()).items.map((key) => key.api_key_hash);
    expect(keys).to.have.members([made.api_key_hash, api_key_hash]);
    expect((await owner.listTriggers()).total).to.equal(1);
    await owner.removeUsageApiKey({ usage_api_key: made.api_key_hash });
    await hook(made.id, { n: 2 });
    await eventually("refused", async () =>
      (await owner.listFirings({ id: made.id })).items.some(({ outcome }) => outcome === "unknown_key"),
    );
    await owner.deleteTrigger(made);
    expect((await owner.listTriggers()).total).to.equal(0);
    // A key of another account is none to revoke, and the service is asked.
    const { api_key_hash: anothers } = await api().must("/add_usage_api_key", { ...NO_PERMISSIONS });
    const asked = owner.deleteTrigger({ id: made.id, api_key_hash: String(anothers) });
    expect(await asked.catch((error: unknown) => error)).to.include({ code: "trigger_not_found" });
  });
});
