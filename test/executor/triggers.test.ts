/** Triggers in the keyholder: keys bound to their definition, causes that hold, each at most once. */
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { verifyReceipt } from "../../client/verify";
import { cidOfCode } from "../../protocol/cid";
import type { ExecutorAnswer, ExecutorRequest, TriggerCredential } from "../../protocol/executor";
import type { Cause, Settings } from "../../protocol/trigger";
import { EventLogs } from "../../executor/chain/eventLogs";
import { deployEmitter } from "../support/emitter";
import { TestAccount, TestChain, TestExecutor, registerPayers, type Outcome } from "../support/executor";

const ECHO = `async function main(params) { return params; }`;
const OTHER = `async function main() { return "other"; }`;
const MINUTE_SECONDS = 60;
/** Not `skip`: the due time of this minute may be from before the keyholder's start. */
const EVERY_MINUTE = { schedule: { cron: "* * * * *", time_zone: "Europe/Berlin", missed: "once" } } as const;
type Minted = ExecutorAnswer<"mintTrigger">;

describe("triggers in the keyholder", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let account: TestAccount;
  let stranger: TestAccount;
  let cid: string;

  before(async () => {
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain);
    await registerPayers(chain, executor);
    account = await TestAccount.create(chain, executor);
    stranger = await TestAccount.create(chain, executor);
    cid = await cidOfCode(ECHO);
    await account.addGroup([ECHO], []);
    await executor.run(account.key, ECHO);
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
  });

  const mint = (settings: Settings, changes: Partial<ExecutorRequest<"mintTrigger">> = {}): Promise<Minted> =>
    executor.call("mintTrigger", { accountId: account.id, cid, params: `{"fixed":1}`, settings, ...changes });
  const attached = async (settings: Settings, changes: Partial<ExecutorRequest<"mintTrigger">> = {}) => {
    const minted = await mint(settings, changes);
    await account.setUsageKey(minted.apiKeyHash, [1]);
    return minted;
  };
  const fire = (
    { sealed }: Minted,
    cause: Cause,
    changes: Partial<Omit<TriggerCredential, "type">> = {},
    code = ECHO,
  ): Promise<Outcome<"run">> => {
    const credential = { type: "trigger", accountId: account.id, sealed, cause, ...changes };
    return executor.ask("run", { credential, code, params: `{"invented":true}`, limitMs: 5_000 });
  };
  const codeOf = async (outcome: Promise<Outcome<"run">>): Promise<string> => (await outcome).refusal?.code ?? "ran";
  const responseOf = async (outcome: Promise<Outcome<"run">>): Promise<Record<string, unknown>> => {
    const { answer, refusal } = await outcome;
    if (answer === undefined) throw new Error(JSON.stringify(refusal));
    return JSON.parse(answer.response) as Record<string, unknown>;
  };
  const thisMinute = (): number => Math.floor(Date.now() / 60_000) * MINUTE_SECONDS;
  const due = (atSeconds = thisMinute()): Cause => ({ type: "schedule", dueAtSeconds: atSeconds });

  const byHand = (key: string, id = "01".repeat(16)): Cause => ({ type: "manual", id, by: { type: "key", key } });

  it("has a key that the contract decides about, and runs its own code with its own params", async () => {
    const minted = await mint(EVERY_MINUTE);
    expect(await codeOf(fire(minted, due()))).to.equal("unknown_key");
    await account.setUsageKey(minted.apiKeyHash, [1]);
    const outcome = fire(minted, due());
    expect(await responseOf(outcome)).to.deep.equal({
      fixed: 1,
      trigger: {
        id: minted.triggerId,
        kind: "schedule",
        due_at: new Date(thisMinute() * 1_000).toISOString(),
      },
    });
    const { config } = await executor.call("info", {});
    const claims = await verifyReceipt(String((await outcome).answer?.receipt), config);
    expect(claims.api_key_hash).to.equal(minted.apiKeyHash);
    expect(claims.trigger?.id).to.equal(minted.triggerId);
    await account.write("removeUsageApiKey", [account.id, minted.apiKeyHash]);
    expect(await codeOf(fire(minted, byHand(account.key)))).to.equal("unknown_key");
  });

  it("runs no other code, in no other account, from no other definition", async () => {
    const minted = await attached(EVERY_MINUTE);
    expect(await codeOf(fire(minted, due(), {}, OTHER))).to.equal("code_unavailable");
    expect(await codeOf(fire(minted, due(), { accountId: stranger.id }))).to.equal("trigger_not_found");
    const bytes = Buffer.from(minted.sealed, "base64");
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    expect(await codeOf(fire({ ...minted, sealed: bytes.toString("base64") }, due()))).to.equal("trigger_not_found");
    const others = [
      await mint(EVERY_MINUTE),
      await mint({ schedule: { ...EVERY_MINUTE.schedule, missed: "skip" } }),
      await mint(EVERY_MINUTE, { params: "{}" }),
      await mint(EVERY_MINUTE, { cid: await cidOfCode(OTHER) }),
    ];
    const ids = [minted, ...others].map(({ apiKeyHash }) => apiKeyHash);
    expect(new Set(ids).size).to.equal(ids.length);
    await stranger.addGroup([ECHO], []);
    const taken = await mint(EVERY_MINUTE);
    await stranger.setUsageKey(taken.apiKeyHash, [1]);
    expect(await codeOf(fire(taken, due()))).to.equal("unknown_key");
  });

  it("gives a repeated request the same trigger", async () => {
    const attempt = "5a".repeat(32);
    const [one, again] = [await mint(EVERY_MINUTE, { attempt }), await mint(EVERY_MINUTE, { attempt })];
    expect(again.apiKeyHash).to.equal(one.apiKeyHash);
    expect(again.triggerId).to.equal(one.triggerId);
  });

  it("makes a hook's secret that nobody can compute from the request", async () => {
    const attempt = "5b".repeat(32);
    const settings = { hook: { verification: "hmac", respond: false } } as const;
    const [one, again] = [await mint(settings, { attempt }), await mint(settings, { attempt })];
    expect(again.hookSecret).to.equal(one.hookSecret);
    const elsewhere = await mint(settings, { attempt, accountId: stranger.id });
    expect(elsewhere.hookSecret, "of the keyholder's root and the account too").not.to.equal(one.hookSecret);
  });

  it("fires only for due times, not before and not long after, and once for each", async () => {
    const minted = await attached(EVERY_MINUTE);
    const now = thisMinute();
    expect(await codeOf(fire(minted, due(now - 30)))).to.equal("trigger_not_due");
    expect(await codeOf(fire(minted, due(now + 2 * MINUTE_SECONDS)))).to.equal("trigger_not_due");
    expect(await codeOf(fire(minted, due(now - 10 * MINUTE_SECONDS)))).to.equal("trigger_not_due");
    expect(await codeOf(fire(minted, due(now)))).to.equal("ran");
    expect(await codeOf(fire(minted, due(now)))).to.equal("already_ran");
    const other = await attached(EVERY_MINUTE);
    const both = await Promise.all([1, 2].map(() => codeOf(fire(other, due()))));
    expect(both.sort()).to.deep.equal(["already_ran", "ran"]);
    expect(await codeOf(fire(minted, { type: "hook", accepted: minted.sealed }))).to.equal("trigger_not_due");
  });

  it("makes the last missed firing late where the schedule says so", async () => {
    const cron = `0 0 1 1 *`;
    const last = Date.UTC(new Date().getUTCFullYear(), 0, 1) / 1_000;
    const [skip, once] = [
      await attached({ schedule: { cron, time_zone: "UTC", missed: "skip" } }),
      await attached({ schedule: { cron, time_zone: "UTC", missed: "once" } }),
    ];
    expect(await codeOf(fire(skip, due(last)))).to.equal("trigger_not_due");
    expect(await codeOf(fire(once, due(last)))).to.equal("ran");
    const before = Date.UTC(new Date().getUTCFullYear() - 1, 0, 1) / 1_000;
    expect(await codeOf(fire(once, due(before)))).to.equal("trigger_not_due");
  });

  it("fires by hand for whoever may run the action in the account, and nobody else", async () => {
    const minted = await attached(EVERY_MINUTE);
    const { key: weak } = await account.addUsageKey([]);
    expect(await codeOf(fire(minted, byHand(stranger.key)))).to.equal("not_authorized");
    expect(await codeOf(fire(minted, byHand(weak)))).to.equal("not_authorized");
    expect(await codeOf(fire(minted, byHand(account.key)))).to.equal("ran");
    expect(await codeOf(fire(minted, byHand(account.key)))).to.equal("already_ran");
  });

  it("by hand uses no PKP that the key which fires it may not use", async () => {
    const signing = `async function main({ pkpId, trigger }) {
      const signature = await Actions.signMessage({ pkpId, message: "paid" });
      return { signed: signature.length > 2, by: trigger.kind };
    }`;
    const owner = await TestAccount.create(chain, executor);
    const pkpId = await owner.mintPkp();
    await owner.addGroup([signing], [pkpId]);
    await owner.addGroup(["any"], []);
    const minted = await executor.call("mintTrigger", {
      accountId: owner.id,
      ...{ cid: await cidOfCode(signing), params: JSON.stringify({ pkpId }), settings: EVERY_MINUTE },
    });
    await owner.setUsageKey(minted.apiKeyHash, [1]);
    const [both, other] = [await owner.addUsageKey([1]), await owner.addUsageKey([2])];
    const fired = (key: string, id: string): Promise<Outcome<"run">> =>
      fire(minted, byHand(key, id.repeat(32)), { accountId: owner.id }, signing);
    for (const [index, key] of [owner.key, both.key].entries())
      expect(await responseOf(fired(key, String(index)))).to.deep.equal({ signed: true, by: "schedule" });
    const { answer, refusal } = await fired(other.key, "2");
    expect(refusal).to.equal(undefined);
    expect(answer?.error?.code).to.equal("permission_denied");
    expect(answer?.error?.message).to.include(pkpId);
    expect(answer?.pkpsUsed).to.deep.equal([]);
    expect((await fire(minted, due(), { accountId: owner.id }, signing)).answer?.error, "by itself").to.equal(
      undefined,
    );
  });

  describe("by a hook", () => {
    const BODY = `{"release":"v1.2.3","fixed":2,"trigger":"x"}`;
    const accept = (minted: Minted, headers: Record<string, string> = {}, body = BODY) =>
      executor.ask("acceptHook", {
        accountId: account.id,
        sealed: minted.sealed,
        body: Buffer.from(body).toString("base64"),
        headers,
      }) as Promise<Outcome<"acceptHook">>;

    it("passes the body's members as params, but never in place of the owner's", async () => {
      const minted = await attached({ hook: { verification: "none", respond: false } });
      const { answer } = await accept(minted);
      const cause: Cause = { type: "hook", accepted: String(answer?.accepted) };
      const response = await responseOf(fire(minted, cause));
      expect(response).to.deep.include({ release: "v1.2.3", fixed: 1 });
      expect(response["trigger"]).to.deep.include({ id: minted.triggerId, kind: "hook" });
      expect(await codeOf(fire(minted, cause))).to.equal("already_ran");
      const other = await attached({ hook: { verification: "none", respond: false } });
      expect(await codeOf(fire(other, cause))).to.equal("trigger_not_due");
      expect((await accept(minted, {}, "[1]")).refusal?.code).to.equal("invalid_body");
      expect((await accept(minted, {}, "nothing")).refusal?.code).to.equal("malformed_json");
      const deep = `{"a":${"[".repeat(15_000)}${"]".repeat(15_000)}}`;
      expect((await accept(minted, {}, deep)).refusal?.code).to.equal("invalid_body");
    });

    it("takes no request that another definition with the same id has accepted", async () => {
      const attempt = "5c".repeat(32);
      const strict = await attached({ hook: { verification: "hmac", respond: false } }, { attempt });
      const lax = await mint({ hook: { verification: "none", respond: false } }, { attempt });
      expect(lax.triggerId).to.equal(strict.triggerId);
      const { answer } = await accept(lax);
      expect(await codeOf(fire(strict, { type: "hook", accepted: String(answer?.accepted) }))).to.equal(
        "trigger_not_due",
      );
    });

    it("checks an HMAC of the body, with a secret that is returned only if it made it", async () => {
      const secret = "a secret of some length";
      const given = await mint({ hook: { verification: "hmac", secret, respond: false } });
      expect(given.hookSecret).to.equal(undefined);
      const made = await mint({ hook: { verification: "hmac", respond: false } });
      for (const [minted, key] of [
        [given, secret],
        [made, String(made.hookSecret)],
      ] as const) {
        const mac = createHmac("sha256", key).update(BODY).digest();
        const hex = mac.toString("hex");
        for (const headers of [
          { "x-hub-signature-256": `sha256=${hex}` },
          { "x-signature": hex },
          { "x-signature-256": mac.toString("base64") },
        ] as Record<string, string>[])
          expect((await accept(minted, headers)).status, JSON.stringify(headers)).to.equal(200);
        for (const headers of [{}, { "x-signature": hex.replace(/^./, (c) => (c === "0" ? "1" : "0")) }])
          expect((await accept(minted, headers as Record<string, string>)).refusal?.code).to.equal(
            "invalid_webhook_signature",
          );
        expect((await accept(minted, { "x-signature": hex }, `{"a":1}`)).status).to.equal(401);
      }
    });

    it("checks what a Standard Webhooks library signs, and names a repeated message the same", async () => {
      const minted = await attached({ hook: { verification: "standard_webhooks", respond: false } });
      const sender = new Webhook(String(minted.hookSecret));
      const signed = (id: string, at: Date): Record<string, string> => ({
        "webhook-id": id,
        "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
        "webhook-signature": `v1,bm90 ${sender.sign(id, at, BODY)}`,
      });
      const [one, again] = [
        await accept(minted, signed("msg_1", new Date())),
        await accept(minted, signed("msg_1", new Date())),
      ];
      expect(one.status).to.equal(200);
      expect(again.answer?.key).to.equal(one.answer?.key);
      expect((await accept(minted, signed("msg_2", new Date(Date.now() - 400_000)))).status).to.equal(401);
      expect((await accept(minted, { ...signed("msg_3", new Date()), "webhook-id": "msg_4" })).status).to.equal(401);
      expect(await codeOf(fire(minted, { type: "hook", accepted: String(one.answer?.accepted) }))).to.equal("ran");
      expect(await codeOf(fire(minted, { type: "hook", accepted: String(again.answer?.accepted) }))).to.equal(
        "already_ran",
      );
    });
  });

  it("does not take endpoints that do not answer for a log that is not there", async () => {
    const options = { chainId: 1n, rpcUrls: ["http://127.0.0.1:1"], others: new Map(), quorum: 1, timeoutMs: 2_000 };
    const logs = new EventLogs(options);
    const hash = `0x${"1".repeat(64)}`;
    const filter = { address: `0x${"1".repeat(40)}`, topics: [], confirmations: 1 };
    const place = { blockNumber: 1, blockHash: hash, transactionHash: hash, place: 0 };
    const failure = await logs.logAt(1, filter, place).catch((error: unknown) => error);
    expect(failure).to.include({ code: "chain_unavailable", retryable: true });
    await logs.close();
  });

  it("reads a log whose block or transaction has more logs than an answer may hold", async () => {
    const [hash, other, topic] = ["1", "2", "3"].map((digit) => `0x${digit.repeat(64)}`) as [string, string, string];
    const address = `0x${"4".repeat(40)}`;
    const place = { blockNumber: 1, blockHash: hash, transactionHash: hash, place: 0 };
    const log = { address, topics: [topic], data: "0x07", logIndex: "0x0", transactionHash: hash, blockHash: hash };
    const large = { ...log, data: `0x${"00".repeat(600_000)}`, logIndex: "0x1" };
    const asked: string[] = [];
    const answers: Record<string, unknown> = {
      eth_chainId: "0x1",
      eth_getBlockByNumber: { number: "0x1", hash, timestamp: "0x1" },
    };
    const node = createServer((request, response) => {
      void json(request).then((body) => {
        const { id, method } = body as { id: number; method: string };
        asked.push(method);
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] }));
      });
    }).listen(0);
    const rpcUrls = [`http://127.0.0.1:${(node.address() as AddressInfo).port}`];
    const logs = new EventLogs({ chainId: 1n, rpcUrls, others: new Map(), quorum: 1, timeoutMs: 5_000 });
    const found = (changes: object = {}) =>
      logs
        .logAt(1, { address, topics: [topic], confirmations: 1 }, { ...place, ...changes })
        .catch(({ code }: { code: string }) => ({ data: code }));
    try {
      const theirs = { ...large, transactionHash: other };
      Object.assign(answers, {
        eth_getLogs: [log, theirs],
        eth_getTransactionReceipt: { blockHash: hash, logs: [log, { ...log, address: `0x${"5".repeat(40)}` }] },
      });
      const all = await Promise.all(Array.from({ length: 20 }, () => found()));
      expect(new Set(all.map(({ data }) => data)), "another's log is large").to.deep.equal(new Set(["0x07"]));
      expect(asked.filter((method) => method === "eth_getTransactionReceipt")).to.have.length(1);
      expect((await found({ place: 1 })).data).to.equal("log_not_found");
      Object.assign(answers, { eth_getTransactionReceipt: { blockHash: hash, logs: [large] } });
      expect((await found({ transactionHash: other })).data, "both are").to.equal("chain_unavailable");
      Object.assign(answers, { eth_getLogs: [{ ...log, transactionHash: other }] });
      expect((await found({ transactionHash: other })).data, "its transaction's others are").to.equal("0x07");
      for (const receipt of [null, { blockHash: other, logs: [log] }]) {
        Object.assign(answers, { eth_getTransactionReceipt: receipt });
        expect((await found({ transactionHash: topic })).data).to.equal("log_not_found");
      }
    } finally {
      await logs.close();
      node.close();
    }
  });

  it("fires for logs that the chain has at the depth it asks for, and invents none", async () => {
    const wallet = await chain.wallet();
    const { address, emit } = await deployEmitter(wallet);
    const topic = `0x${"ab".repeat(32)}`;
    const receipt = await emit(topic, 7);
    const causeOf = (changes: Partial<Extract<Cause, { type: "event" }>> = {}): Cause => ({
      type: "event",
      blockNumber: receipt.blockNumber,
      blockHash: receipt.blockHash,
      transactionHash: receipt.hash,
      place: 0,
      ...changes,
    });
    const minted = await attached({ event: { address, topics: [topic], confirmations: 1 } });
    const mined = await chain.provider.getBlock("latest");
    expect(await codeOf(fire(minted, causeOf({ place: 1 })))).to.equal("log_not_found");
    expect(await codeOf(fire(minted, causeOf({ blockHash: String(mined?.hash) })))).to.equal("log_not_found");
    expect(await codeOf(fire(minted, causeOf({ transactionHash: `0x${"1".repeat(64)}` })))).to.equal("log_not_found");
    const { trigger } = (await responseOf(fire(minted, causeOf()))) as { trigger: { event: Record<string, unknown> } };
    expect(trigger.event).to.deep.include({ transaction_hash: receipt.hash, topics: [topic] });
    expect(BigInt(String(trigger.event["data"]))).to.equal(7n);
    expect(await codeOf(fire(minted, causeOf()))).to.equal("already_ran");
    const others = await attached({ event: { address, topics: [`0x${"cd".repeat(32)}`], confirmations: 1 } });
    expect(await codeOf(fire(others, causeOf()))).to.equal("log_not_found");
    const deep = await attached({ event: { address, topics: [[topic, `0x${"0".repeat(64)}`]], confirmations: 40 } });
    expect(await codeOf(fire(deep, causeOf()))).to.equal("log_not_found");
    await chain.provider.send("hardhat_mine", ["0x28"]);
    expect(await codeOf(fire(deep, causeOf()))).to.equal("ran");
  });
});
