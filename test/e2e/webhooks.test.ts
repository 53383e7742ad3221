/** Webhooks on a whole stack: what arrives, signed by the statement key, and what hostile receivers achieve. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { Wallet, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import { verifyWebhook } from "../../client";
import { createChainSecuredClient, type ChainSecuredClient, type ContractSignature } from "../../client/owner";
import { connect, fundedWallet } from "../support/chain";
import { deploySafe, type Owner, type TestSafe } from "../support/safe";
import { eventually } from "../support/chainBed";
import { codeOf, members, newApiAccount, NO_PERMISSIONS, type ApiAccount, type HttpAnswer } from "../support/http";
import { useStack } from "../support/stack";
import { startReceiver, type Received, type Receiver } from "../support/webhookReceiver";

const CODE = `async function main({ fails }) { if (fails) throw new Error("no"); return 1; }`;

type Delivery = Record<string, unknown>;

describe("webhooks", function () {
  this.timeout(120_000);
  const stack = useStack();
  let account: ApiAccount;
  let receiver: Receiver;
  let statementKey: string;

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    receiver = await startReceiver();
    const info = (await (await fetch(`${stack().baseUrl}/info`)).json()) as { config: { statement_key: string } };
    statementKey = info.config.statement_key;
    const anything = [`0x${"00".repeat(32)}`];
    await account.api.must("/add_group", { group_name: "any", group_description: "", cid_hashes_permitted: anything });
  });
  after(() => receiver.stop());

  const create = async (of: ApiAccount, url: string, events: readonly string[] = ["*"]): Promise<string> =>
    String((await of.api.must("/webhooks", { url, events }))["id"]);
  const deliveries = async (of: ApiAccount, id: string): Promise<Delivery[]> =>
    (await of.api.get(`/webhooks/${id}/deliveries`)).body as Delivery[];
  const run = (of: ApiAccount, js_params: object = {}): Promise<HttpAnswer> =>
    of.api.post("/run_action", { code: CODE, js_params });

  /** The receiver of docs/webhooks.md that has nothing but Node. */
  type IsGenuine = (headers: Received["headers"], body: Buffer, statementKey: string) => boolean;
  let isGenuine: IsGenuine;
  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), "keywright-receiver-"));
    const file = join(folder, "receiver.mjs");
    const page = readFileSync(join(__dirname, "..", "..", "docs", "webhooks.md"), "utf8");
    writeFileSync(file, `${/```js\n([^`]+|`(?!``))*```/.exec(page)?.[0].slice(6, -3) ?? ""}\nexport { isGenuine };`);
    ({ isGenuine } = (await import(file)) as { isGenuine: IsGenuine });
    rmSync(folder, { recursive: true });
  });

  /** What another account is told of a key that expires soon: looked for every 10 s, while the others are tested. */
  let expiring: { readonly receiver: Receiver; readonly expected: object; readonly toldAt: Promise<number> };
  before(async () => {
    const [other, receiver] = [await newApiAccount(stack().baseUrl), await startReceiver()];
    await create(other, receiver.url, ["key.*"]);
    const expiration = Math.floor(Date.now() / 1_000) + 3_600;
    const made = await other.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, expiration });
    const toldAt = receiver.next("key.expiring").then(() => Date.now());
    toldAt.catch(() => undefined);
    expiring = { receiver, expected: { api_key_hash: made["api_key_hash"], expires_at: expiration }, toldAt };
  });
  after(() => expiring?.receiver.stop());

  it("tell of runs, writes and the contract's events, each signed by the statement key", async () => {
    const id = await create(account, receiver.url);
    expect((await run(account)).status).to.equal(200);
    await run(account, { fails: true });
    await account.api.must("/add_group", { group_name: "second", group_description: "" });
    const succeeded = await receiver.next("run.succeeded");
    const failed = await receiver.next("run.failed");
    const confirmed = await receiver.next("write.confirmed");
    const isSecond = ({ type, data }: Received): boolean =>
      type === "account.group_added" && (data["args"] as { groupId: string }).groupId === "2";
    await eventually("the contract's event arrives", async () => receiver.received.some(isSecond));
    const added = receiver.received.find(isSecond) as Received;
    for (const message of [succeeded, failed, confirmed, added]) {
      const body = Buffer.from(message.body);
      expect(isGenuine(message.headers, body, statementKey), message.type).to.equal(true);
      expect(isGenuine(message.headers, body, `0x${"12".repeat(32)}`)).to.equal(false);
      expect(isGenuine({ ...message.headers, "webhook-timestamp": "1764014400" }, body, statementKey)).to.equal(false);
      expect(isGenuine(message.headers, Buffer.from(`${message.body} `), statementKey)).to.equal(false);
      const options = { statementKey, accountId: account.id };
      const verified = await verifyWebhook(message.headers as Record<string, string>, message.body, options);
      expect(verified).to.include({ id: message.id, type: message.type, account_id: account.id });
    }
    expect(failed.data).to.include({ outcome: "threw", api_key_hash: account.id });
    expect(confirmed.data).to.deep.include({ kind: "add_group", charged: true, result: { group_id: "2" } });
    expect(added.data["args"]).to.include({ name: "second" });
    await eventually("all are known to have arrived", async () =>
      (await deliveries(account, id)).every(({ state }) => state === "delivered"),
    );
    await account.api.must(`/webhooks/${id}/delete`, undefined);
  });

  it("carry a signature that fits nothing else", async () => {
    const id = await create(account, receiver.url, ["webhook.test"]);
    await account.api.must(`/webhooks/${id}/test`, undefined);
    const { headers, body } = await receiver.next("webhook.test");
    const given = headers as Record<string, string>;
    const refused = async (...[wrongHeaders, wrongBody, more]: [object?, string?, object?]): Promise<unknown> =>
      verifyWebhook({ ...given, ...wrongHeaders }, wrongBody ?? body, { statementKey, ...more }).then(
        () => "accepted",
        (error: unknown) => (error as { code: unknown }).code,
      );
    expect(await refused()).to.equal("accepted");
    expect(await refused({}, body.replace("test", "tesu"))).to.equal("invalid_webhook");
    expect(await refused({ "webhook-id": `msg_${"0".repeat(32)}` })).to.equal("invalid_webhook");
    expect(await refused({ "webhook-timestamp": String(Number(given["webhook-timestamp"]) - 1) })).to.equal(
      "invalid_webhook",
    );
    expect(await refused({}, body, { statementKey: `0x${"12".repeat(32)}` })).to.equal("invalid_webhook");
    expect(await refused({}, body, { accountId: `0x${"12".repeat(32)}` })).to.equal("invalid_webhook");
    expect(await refused({}, body, { toleranceSeconds: -10 })).to.equal("invalid_webhook");
    // The reference library knows shared secrets only: it takes the headers as its own and finds no signature of those.
    expect(() => new Webhook(`whsec_${Buffer.alloc(32).toString("base64")}`).verify(body, given)).to.throw(
      "No matching signature found",
    );
    await account.api.must(`/webhooks/${id}/delete`, undefined);
  });

  it("are tried again, replayed under the same id, and show what the receiver answered", async () => {
    const own = await startReceiver();
    try {
      const id = await create(account, own.url, ["webhook.*"]);
      own.answer((response) => response.writeHead(500).end("broken\0".repeat(1_000)));
      const messageId = (await account.api.must(`/webhooks/${id}/test`, undefined))["message_id"];
      await eventually("the failure is shown", async () => (await deliveries(account, id))[0]?.["status"] === 500);
      const [first] = await deliveries(account, id);
      expect(first).to.include({ message_id: messageId, state: "pending", attempts: 1 });
      expect(String(first?.["answer"]))
        .to.match(/^broken/)
        .and.have.length.at.most(1_024);
      own.answer((response) => response.writeHead(200).end());
      await eventually("the next attempt succeeds", async () => {
        const [delivery] = await deliveries(account, id);
        return delivery?.["state"] === "delivered" && delivery["attempts"] === 2;
      });
      const replayed = await account.api.must(`/webhooks/${id}/replay`, { message_ids: [messageId] });
      expect(replayed).to.deep.equal({ replayed: 1 });
      await eventually("it arrives once more", async () => own.received.length === 3);
      expect(new Set(own.received.map((message) => message.id))).to.deep.equal(new Set([messageId]));
      await account.api.must(`/webhooks/${id}/delete`, undefined);
    } finally {
      await own.stop();
    }
  });

  it("delay nobody by receivers that hang, drip, close, redirect or answer without end", async () => {
    const hostile = await newApiAccount(stack().baseUrl);
    const target = await startReceiver();
    const traps: Receiver[] = [];
    let isEnded = false;
    const behaviours: Parameters<Receiver["answer"]>[0][] = [
      (response) => void response.on("close", () => (isEnded = true)),
      (response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write("x"), 500);
        response.on("close", () => ((isEnded = true), clearInterval(timer)));
      },
      (response) => response.destroy(),
      (response) => response.writeHead(307, { location: target.url }).end(),
      (response) => {
        response.writeHead(500);
        const timer = setInterval(() => response.write("x".repeat(10_000)), 1);
        response.on("close", () => clearInterval(timer));
      },
    ];
    try {
      for (const behaviour of behaviours) {
        const trap = await startReceiver();
        trap.answer(behaviour);
        traps.push(trap);
        await create(hostile, trap.url, ["webhook.test"]);
      }
      const ids = ((await hostile.api.get("/webhooks")).body as { id: string }[]).map(({ id }) => id);
      await Promise.all(
        ids.flatMap((id) => Array.from({ length: 8 }, () => hostile.api.must(`/webhooks/${id}/test`, undefined))),
      );
      await eventually("the traps are asked", async () => traps.every(({ received }) => received.length > 0));
      const calm = await startReceiver();
      const id = await create(account, calm.url, ["webhook.test"]);
      await account.api.must(`/webhooks/${id}/test`, undefined);
      await calm.next("webhook.test");
      expect(isEnded, "the first attempts that hang are still under way").to.equal(false);
      await calm.stop();
      await account.api.must(`/webhooks/${id}/delete`, undefined);
      expect(target.received, "no redirect was followed").to.deep.equal([]);
      const ended = async (nth: number): Promise<Delivery | undefined> =>
        (await deliveries(hostile, ids[nth] ?? "")).find(({ attempts }) => attempts !== 0);
      expect(await ended(3)).to.include({ status: 307, state: "pending" });
      for (const nth of [0, 1]) {
        await eventually("it is given up", async () => (await ended(nth)) !== undefined, 20_000);
        expect((await ended(nth))?.["failure"]).to.be.a("string");
      }
    } finally {
      for (const trap of [...traps, target]) await trap.stop();
    }
  });

  it("are refused at addresses that are not public, with what to fix", async () => {
    for (const url of [
      "http://10.0.0.1/",
      "http://169.254.169.254/latest",
      "http://[fd00::1]/",
      "http://example.com:22/",
    ]) {
      const refused = await account.api.post("/webhooks", { url });
      expect(refused.status, url).to.equal(400);
      expect(codeOf(refused)).to.equal("invalid_value");
      expect(String(members(refused)["detail"])).to.match(/^url: /);
    }
    for (const body of [{ url: "ftp://example.com" }, { events: [] }, { events: ["nothing.*"] }])
      expect([400, 422]).to.include((await account.api.post("/webhooks", body)).status);
    for (const [field, value] of [
      ["url", `${receiver.url}/\0`],
      ["description", "\0"],
    ] as const) {
      const refused = await account.api.post("/webhooks", { url: receiver.url, [field]: value });
      expect(refused.status, field).to.equal(400);
      expect(String(members(refused)["detail"])).to.equal(`${field}: must not hold U+0000`);
    }
  });

  it("belong to the owner alone, and there are only so many", async () => {
    const key = String((await account.api.must("/add_usage_api_key", NO_PERMISSIONS))["usage_api_key"]);
    const id = await create(account, receiver.url, ["webhook.test"]);
    for (const [path, body] of [
      ["/webhooks", { url: receiver.url }],
      [`/webhooks/${id}`, { state: "off" }],
      [`/webhooks/${id}/delete`, undefined],
      [`/webhooks/${id}/test`, undefined],
      [`/webhooks/${id}/replay`, {}],
      [`/webhooks/${id}/receive`, {}],
    ] as const)
      expect(codeOf(await account.api.with(key).post(path, body)), path).to.equal("owner_only");
    for (const path of ["/webhooks", `/webhooks/${id}/deliveries`])
      expect(codeOf(await account.api.with(key).get(path)), path).to.equal("owner_only");
    const stranger = await newApiAccount(stack().baseUrl);
    expect(codeOf(await stranger.api.post(`/webhooks/${id}/test`, undefined))).to.equal("webhook_not_found");
    for (let made = 0; made < 16; made++) await create(stranger, receiver.url);
    expect(codeOf(await stranger.api.post("/webhooks", { url: receiver.url }))).to.equal("too_many_webhooks");
  });

  describe("of an account that a Safe owns", () => {
    const wallets = Array.from({ length: 4 }, () => Wallet.createRandom());
    const [one, two, delegate, stranger] = wallets as [Owner, Owner, HDNodeWallet, HDNodeWallet];
    let provider: JsonRpcProvider;
    let safe: TestSafe;
    before(async () => {
      provider = connect(stack().rpcUrl);
      safe = await deploySafe(await fundedWallet(provider), [one, two], 2);
      const owner = await clientWith();
      const created = await owner.prepare.createAccount({ account_name: "DAO", account_description: "" });
      await safe.execute([owner.transaction(created)]);
    });
    after(() => provider.destroy());

    const clientWith = (ownerSignature?: ContractSignature, owner = safe.address): Promise<ChainSecuredClient> =>
      createChainSecuredClient({
        ...{ baseUrl: stack().baseUrl, signer: delegate.connect(provider), owner },
        ...(ownerSignature && { ownerSignature }),
      });
    const codeOfCall = (call: Promise<unknown>): Promise<string> =>
      call.then(
        () => "done",
        (error: unknown) => (error as { code: string }).code,
      );

    it("are managed with signatures that the Safe accepts, and with no others", async () => {
      const owner = await clientWith((digest) => safe.sign(digest));
      const made = await owner.createWebhook({ url: receiver.url, events: ["webhook.test"] });
      expect((await owner.listWebhooks()).map(({ id }) => id)).to.deep.equal([made.id]);
      await owner.testWebhook({ id: made.id });
      await eventually("it arrives", async () => receiver.received.some(({ body }) => body.includes(owner.accountId)));
      for (const sign of [
        (digest: string) => safe.sign(digest, 1),
        () => safe.sign(`0x${"12".repeat(32)}`),
        (digest: string) => stranger.signMessage(digest),
        async () => "0x",
        async () => "nonsense",
      ])
        expect(await codeOfCall((await clientWith(sign)).listWebhooks())).to.equal("invalid_wallet_auth");
      // Without an account of its own a contract is not asked, whatever it would say.
      const none = await clientWith((digest) => safe.sign(digest), stack().contractAddress);
      expect(await codeOfCall(none.listWebhooks())).to.equal("invalid_wallet_auth");
      expect(await codeOfCall((await clientWith()).listWebhooks())).to.equal("invalid_argument");
      await owner.deleteWebhook({ id: made.id });
    });

    it("are refused to a contract that burns its gas, breaks off or answers at length", async () => {
      const owner = await clientWith((digest) => safe.sign(digest));
      const code = await provider.getCode(safe.address);
      const hostile = {
        loop: "0x5b600056",
        invalid: "0xfe",
        underflow: "0x01",
        jump: "0x600556",
        long: "0x620a00006000f3",
      };
      for (const [name, other] of Object.entries(hostile)) {
        await provider.send("anvil_setCode", [safe.address, other]);
        expect(await codeOfCall((await clientWith(async () => "0x")).listWebhooks()), name).to.equal(
          "invalid_wallet_auth",
        );
        expect((await account.api.get("/list_groups")).status, name).to.equal(200);
      }
      await provider.send("anvil_setCode", [safe.address, code]);
      expect(await codeOfCall(owner.listWebhooks())).to.equal("done");
    });
  });

  it("have a level for low credit that their owner sets, and limits that are told", async () => {
    const made = await account.api.must("/webhooks", { url: receiver.url, events: ["credit.low"] });
    expect(made).to.include({ credit_low_cents: 100 });
    const path = `/webhooks/${String(made["id"])}`;
    expect(await account.api.must(path, { credit_low_cents: 5_000 })).to.include({ credit_low_cents: 5_000 });
    expect(await account.api.must(path, { state: "off" })).to.include({ credit_low_cents: 5_000 });
    for (const wrong of [0, -1, 100_000_000, "many"])
      expect([400, 422], String(wrong)).to.include((await account.api.post(path, { credit_low_cents: wrong })).status);
    await account.api.must(`${path}/delete`, undefined);
    const { webhooks } = (await account.api.get("/limits")).body as { webhooks: Record<string, number> };
    expect(webhooks).to.include({ perAccount: 16, creditLowCents: 100, keyExpiringDays: 3, timeoutMs: 10_000 });
  });

  it("are passed on to a port of this machine by the command line, with their signatures", async () => {
    const local = await startReceiver();
    const main = join(__dirname, "..", "..", "dist", "client", "cli", "main.js");
    const args = [main, "webhooks", "listen", "--forward-to", local.url, "--events", "webhook.*,run.*"];
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, KEYWRIGHT_URL: stack().baseUrl, KEYWRIGHT_API_KEY: account.key };
    const listening = spawn(process.execPath, args, { env });
    let printed = "";
    for (const stream of [listening.stdout, listening.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => void (printed += text));
    const ended = once(listening, "exit");
    try {
      await eventually("it listens", () => printed.includes("Listening as wh_"), 20_000);
      const id = /wh_[0-9a-f]{32}/.exec(printed)?.[0] ?? "";
      await account.api.must(`/webhooks/${id}/test`, undefined);
      await run(account);
      for (const { headers, body } of [await local.next("webhook.test"), await local.next("run.succeeded")])
        await verifyWebhook(headers as Record<string, string>, body, { statementKey, accountId: account.id });
      await eventually("it says so", () => printed.includes("webhook.test msg_") && printed.includes("→ 204"));
      listening.kill("SIGINT");
      expect((await ended)[0]).to.equal(0);
      const left = (await account.api.get("/webhooks")).body as { id: string }[];
      expect(left.map((webhook) => webhook.id)).not.to.include(id);
    } finally {
      listening.kill("SIGKILL");
      await local.stop();
    }
  });

  it("without a URL are fetched, signed the same way, and count as delivered when the client says so", async () => {
    const { id } = await account.api.must("/webhooks", { events: ["webhook.test"] });
    const messageId = (await account.api.must(`/webhooks/${String(id)}/test`, undefined))["message_id"];
    const receive = async (passed: object[]): Promise<{ headers: Record<string, string>; body: string }[]> =>
      (await account.api.must(`/webhooks/${String(id)}/receive`, { passed }))["messages"] as never;
    const [message, ...others] = await receive([]);
    expect(others).to.deep.equal([]);
    await verifyWebhook(message?.headers ?? {}, message?.body ?? "", { statementKey, accountId: account.id });
    expect(message?.headers["webhook-id"]).to.equal(messageId);
    expect(await receive([{ message_id: messageId, status: 200 }])).to.deep.equal([]);
    const [delivery] = await deliveries(account, String(id));
    expect(delivery).to.include({ state: "delivered", status: 200, attempts: 1 });
  });

  it("tell once that a usage key expires soon", async () => {
    const again = (await expiring.toldAt) + 11_000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, again - Date.now())));
    const told = expiring.receiver.received.filter(({ type }) => type === "key.expiring");
    expect(told.map(({ data }) => data)).to.deep.equal([expiring.expected]);
  });
});
