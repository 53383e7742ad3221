/** The outbox: one message for each outcome that a webhook wants, in the transaction of the outcome itself. */
import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import type { KeywrightError } from "../../../protocol/errors";
import { actionHashOf, type AccountId, type Address, type Cid, type Hash32 } from "../../../protocol/ids";
import { WEBHOOK_LIMITS } from "../../../protocol/limits";
import { typeOfChainEvent } from "../../../protocol/webhooks";
import type { Db } from "../../../relayer/store/database";
import { enqueue } from "../../../relayer/store/outbox";
import { Webhooks } from "../../../relayer/webhooks/registry";
import type { Executor } from "../../../relayer/executor/client";
import { recordEnds } from "../../../relayer/credits/runRecords";
import { creditIntent } from "../../../relayer/credits/payments/books";
import { Transactions } from "../../../relayer/chain/submissions/transactions";
import type { SubmissionOutcome } from "../../../relayer/chain/types";
import { insertWrite } from "../../support/writeRows";
import { freshAccount, fund, openCredits, type CreditsBench } from "../../support/credits";
import { insertWebhook } from "../../support/webhookBed";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid;

const FORMER_OWNER = `0x${"f0".repeat(20)}` as Address;
const NEW_OWNER = `0x${"0e".repeat(20)}` as Address;
const codeOf = (error: KeywrightError): string => error.code;

const webhook = (
  db: Db,
  accountId: AccountId,
  events: readonly string[],
  state: "on" | "off" = "on",
): Promise<string> => insertWebhook(db, accountId, { events: [...events], state });

const sent = (db: Db, webhookId: string): Promise<{ id: string; type: string; data: Record<string, unknown> }[]> =>
  db
    .selectFrom("webhook_deliveries")
    .innerJoin("webhook_events", "webhook_events.place", "webhook_deliveries.place")
    .select(["webhook_events.id", "type", "data"])
    .where("webhook_id", "=", webhookId)
    .orderBy("webhook_events.place")
    .execute();

const typesSent = async (db: Db, webhookId: string): Promise<string[]> =>
  (await sent(db, webhookId)).map(({ type }) => type);

describe("the outbox of webhooks", () => {
  let bench: CreditsBench;
  let db: Db;
  before(async () => {
    bench = await openCredits();
    db = bench.db;
  });
  after(() => bench.stop());

  const tell = (accountId: AccountId, type: Parameters<typeof enqueue>[2]): Promise<void> =>
    db.transaction().execute((trx) => enqueue(trx, accountId, type, { what: type }));

  it("has a message for each webhook that is on and wants the type, its family or everything", async () => {
    const account = freshAccount();
    const all = await webhook(db, account, ["*"]);
    const family = await webhook(db, account, ["run.*", "write.failed"]);
    const one = await webhook(db, account, ["run.failed"]);
    const off = await webhook(db, account, ["*"], "off");
    const foreign = await webhook(db, freshAccount(), ["*"]);
    for (const type of ["run.failed", "run.succeeded", "write.failed"] as const) await tell(account, type);
    expect(await typesSent(db, all)).to.deep.equal(["run.failed", "run.succeeded", "write.failed"]);
    expect(await typesSent(db, family)).to.deep.equal(["run.failed", "run.succeeded", "write.failed"]);
    expect(await typesSent(db, one)).to.deep.equal(["run.failed"]);
    expect(await typesSent(db, off)).to.deep.equal([]);
    expect(await typesSent(db, foreign)).to.deep.equal([]);
    const [first] = await sent(db, all);
    expect(first?.id).to.match(/^msg_[0-9a-f]{32}$/);
    expect(first?.data).to.deep.equal({ what: "run.failed" });
  });

  it("has nothing of a transaction that fails, and nothing of an account without webhooks", async () => {
    const account = freshAccount();
    const id = await webhook(db, account, ["*"]);
    const failing = db.transaction().execute(async (trx) => {
      await enqueue(trx, account, "run.failed", {});
      throw new Error("the outcome was not stored");
    });
    await failing.catch(() => undefined);
    expect(await sent(db, id)).to.deep.equal([]);
    const without = freshAccount();
    await tell(without, "run.failed");
    expect(
      await db.selectFrom("webhook_events").select("id").where("account_id", "=", without).execute(),
    ).to.deep.equal([]);
  });

  it("has each run once, also where its end was stored twice", async () => {
    const account = freshAccount();
    await fund(db, account, 1_000);
    const id = await webhook(db, account, ["run.*"]);
    const { reservations } = bench.credits;
    for (const outcome of ["succeeded", "threw"] as const) {
      const record = {
        ...{ accountId: account, keyId: account as unknown as Hash32, requestId: randomUUID(), cid: CID, outcome },
        ...{ actionHash: actionHashOf(CID), durationMs: 10, pkpsUsed: [], startedAt: new Date() },
        receiptSha256: "3c".repeat(32),
      };
      const { reservationId } = await reservations.reserveRun({ accountId: account, limitMs: 1_000 });
      await reservations.settleRun(reservationId, 10, record);
      await reservations.settleRun(reservationId, 10, record);
      await recordEnds(db);
    }
    const messages = await sent(db, id);
    expect(messages.map(({ type }) => type)).to.deep.equal(["run.succeeded", "run.failed"]);
    expect(messages[1]?.data).to.include({ outcome: "threw", cost_cents: 1, action_ipfs_cid: CID });
  });

  it("tells of a payment once, and of low credit once for each time that it became low", async () => {
    const account = freshAccount();
    await bench.credits.accounts.balance(account);
    const id = await webhook(db, account, ["payment.*", "credit.*"]);
    const pay = (intentId: string): Promise<boolean> =>
      creditIntent(db, { intentId, accountId: account, amountCents: 500 });
    const spend = async (cents: number): Promise<void> => {
      const { reservationId } = await bench.credits.reservations.reserveRun({ accountId: account, limitMs: 1e6 });
      await bench.credits.reservations.settleRun(reservationId, cents * 1_000);
    };
    const [one, two] = [`pi_${randomUUID()}`, `pi_${randomUUID()}`];
    await pay(one);
    await pay(one);
    await spend(400);
    expect(await typesSent(db, id)).to.deep.equal(["payment.credited"]);
    await spend(1);
    await spend(1);
    await pay(two);
    await spend(500);
    const messages = await sent(db, id);
    expect(messages.map(({ type }) => type)).to.deep.equal([
      "payment.credited",
      "credit.low",
      "payment.credited",
      "credit.low",
    ]);
    expect(messages[0]?.data).to.deep.equal({ payment_intent_id: one, amount_cents: 500 });
    expect(messages[1]?.data).to.deep.equal({ balance_cents: 99, threshold_cents: 100 });
  });

  it("tells each webhook of low credit at its own level, and those with the same one in one message", async () => {
    const account = freshAccount();
    await fund(db, account, 1_000);
    const at = (creditLowCents: number, state: "on" | "off" = "on"): Promise<string> =>
      insertWebhook(db, account, { events: ["credit.low"], creditLowCents, state });
    const [high, alsoHigh, low, off] = [await at(800), await at(800), await at(300), await at(800, "off")];
    const levels = async (id: string): Promise<unknown[]> => (await sent(db, id)).map(({ data }) => data);
    const spend = async (cents: number): Promise<void> => {
      const { reservationId } = await bench.credits.reservations.reserveRun({ accountId: account, limitMs: 1e6 });
      await bench.credits.reservations.settleRun(reservationId, cents * 1_000);
    };
    await spend(200);
    expect(await levels(high), "800 is not below 800").to.deep.equal([]);
    await spend(100);
    expect(await levels(high)).to.deep.equal([{ balance_cents: 700, threshold_cents: 800 }]);
    expect((await sent(db, alsoHigh))[0]?.id).to.equal((await sent(db, high))[0]?.id);
    expect(await levels(low)).to.deep.equal([]);
    await spend(600);
    expect(await levels(low)).to.deep.equal([{ balance_cents: 100, threshold_cents: 300 }]);
    expect(await levels(high)).to.have.length(1);
    expect(await levels(off)).to.deep.equal([]);
  });

  it("tells at a level that is raised, and for an account that had no balance when the webhook was made", async () => {
    const account = freshAccount();
    const id = await insertWebhook(db, account, { events: ["credit.low"], creditLowCents: 10 });
    await fund(db, account, 1_000);
    await db.updateTable("webhooks").set({ credit_low_cents: 950 }).where("id", "=", id).execute();
    const { reservationId } = await bench.credits.reservations.reserveRun({ accountId: account, limitMs: 1e6 });
    await bench.credits.reservations.settleRun(reservationId, 100_000);
    expect((await sent(db, id)).map(({ data }) => data)).to.deep.equal([{ balance_cents: 900, threshold_cents: 950 }]);
  });

  async function happen(
    accountId: AccountId,
    name: string,
    args: object,
    { removed = false, owner = null }: { removed?: boolean; owner?: Address | null } = {},
  ): Promise<void> {
    await db
      .insertInto("chain_events")
      .values({
        ...{ account_id: accountId, name, args: JSON.stringify(args), removed, owner, log_index: 0 },
        block_number: 1e9,
        ...{ block_hash: `0x${randomBytes(32).toString("hex")}`, transaction_hash: `0x${"7a".repeat(32)}` },
      })
      .execute();
  }

  it("has the contract's events of the account, whatever characters they hold, also those taken back", async () => {
    const account = freshAccount();
    const id = await webhook(db, account, ["account.*"]);
    await happen(account, "GroupAdded", { id: account, name: 'nul\u0000 \ud800 "' });
    await happen(account, "GroupAdded", { id: account, name: "x".repeat(20_000) }, { removed: true });
    const messages = await sent(db, id);
    expect(messages.map(({ type }) => type)).to.deep.equal(["account.group_added", "account.group_added"]);
    expect(typeOfChainEvent("UsageApiKeyScopesSet")).to.equal("account.usage_api_key_scopes_set");
    for (const { type, data } of messages) expect(typeOfChainEvent(String(data["name"]))).to.equal(type);
    expect(messages[0]?.data).to.deep.include({
      name: "GroupAdded",
      removed: false,
      args: { id: account, name: 'nul\u0000 \ud800 "' },
    });
    expect(messages[1]?.data).to.deep.include({ removed: true, args: null });
  });

  it("is for at most sixteen webhooks of an account, however many are asked for at once", async () => {
    const webhooks = new Webhooks({ db, executor: undefined as never, httpsOnly: true });
    const owner = { accountId: freshAccount() };
    const asked = Array.from({ length: 40 }, () => webhooks.create(owner, {}));
    const refused = (await Promise.allSettled(asked)).flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
    expect(new Set(refused.map(codeOf))).to.deep.equal(new Set(["too_many_webhooks"]));
    expect(await webhooks.list(owner.accountId)).to.have.length(WEBHOOK_LIMITS.perAccount);
  });

  it("ends with a change of ownership: the former owner's receivers learn nothing more", async () => {
    const account = freshAccount();
    const id = await webhook(db, account, ["*"]);
    await happen(account, "AccountOwnershipTransferred", { id: account });
    await happen(account, "GroupAdded", { id: account });
    await tell(account, "run.failed");
    expect(await typesSent(db, id)).to.deep.equal(["account.account_ownership_transferred"]);
    const row = await db.selectFrom("webhooks").select(["state", "off_reason"]).where("id", "=", id).executeTakeFirst();
    expect(row).to.deep.equal({ state: "off", off_reason: "owner_changed" });
  });

  it("has no further test of a webhook for which many messages wait", async () => {
    const account = freshAccount();
    const id = await webhook(db, account, [], "off");
    const webhooks = new Webhooks({ db, executor: undefined as never, httpsOnly: true });
    for (let made = 0; made < WEBHOOK_LIMITS.waitingForTest; made++) await webhooks.test(account, id);
    expect(await webhooks.test(account, id).catch(codeOf)).to.equal("queue_full");
    expect(await sent(db, id)).to.have.length(WEBHOOK_LIMITS.waitingForTest);
    await sql`update webhook_deliveries set state = 'delivered' where ctid = any(array(
      select ctid from webhook_deliveries where webhook_id = ${id} limit 1))`.execute(db);
    expect(await webhooks.test(account, id)).to.match(/^msg_/);
  });

  it("also of those receivers whose address is looked up while the owner changes", async () => {
    const url = "https://slow.example";
    const [account, other] = [freshAccount(), freshAccount()];
    let current = account;
    const call = async (): Promise<unknown> => {
      await happen(current, "AccountOwnershipTransferred", { id: current }, { owner: NEW_OWNER });
      return {};
    };
    const webhooks = new Webhooks({ db, executor: { call: call as Executor["call"] }, httpsOnly: true });
    const off = { state: "off", offReason: "owner_changed" };
    expect(await webhooks.create({ accountId: account }, { url })).to.deep.include(off);
    const id = await webhook(db, other, ["*"]);
    current = other;
    const refusal = await webhooks.update({ accountId: other }, id, { url, state: "on" }).catch(codeOf);
    expect(refusal).to.equal("account_not_owned");
    expect((await webhooks.list(other))[0]).to.deep.include({ ...off, url: "https://example.com" });
    const refused = { call: (async () => ({ problem: "none of its addresses is public" })) as Executor["call"] };
    const refusing = new Webhooks({ db, executor: refused, httpsOnly: true });
    const before = (await refusing.list(account)).length;
    expect(await refusing.create({ accountId: account, wallet: NEW_OWNER }, { url }).catch(codeOf)).to.equal(
      "invalid_value",
    );
    expect(await refusing.list(account)).to.have.length(before);
  });

  it("and lets nobody make or switch on a receiver who was authorised before the owner changed", async () => {
    const account = freshAccount();
    const webhooks = new Webhooks({ db, executor: { call: (async () => ({})) as Executor["call"] }, httpsOnly: true });
    const id = await webhook(db, account, ["*"], "off");
    await happen(account, "AccountCreated", { id: account }, { owner: FORMER_OWNER });
    await happen(account, "AccountOwnershipTransferred", { id: account }, { owner: NEW_OWNER });
    const url = "https://example.com";
    for (const wallet of [FORMER_OWNER, undefined]) {
      const former = { accountId: account, wallet };
      expect(await webhooks.update(former, id, { state: "on" }).catch(codeOf)).to.equal("account_not_owned");
      expect(await webhooks.create(former, { url }).catch(codeOf)).to.equal("account_not_owned");
    }
    expect(await webhooks.list(account)).to.have.length(1);
    expect((await webhooks.list(account))[0]).to.include({ state: "off" });
    const owner = { accountId: account, wallet: NEW_OWNER };
    expect(await webhooks.update(owner, id, { state: "on" })).to.include({ state: "on" });
    expect(await webhooks.create(owner, { url })).to.include({ state: "on" });
    // A reorganization takes the transfer back: the owner is the former one again.
    await sql`update chain_events set retracted = true where account_id = ${account} and owner = ${NEW_OWNER}`.execute(
      db,
    );
    expect(await webhooks.update({ accountId: account, wallet: FORMER_OWNER }, id, { state: "on" })).to.include({
      state: "on",
    });
  });

  it("and leaves none on that is switched on or made in the very moment of the change", async () => {
    const webhooks = new Webhooks({ db, executor: { call: (async () => ({})) as Executor["call"] }, httpsOnly: true });
    for (let round = 0; round < 40; round++) {
      const account = freshAccount();
      const former = { accountId: account, wallet: FORMER_OWNER };
      await happen(account, "AccountCreated", { id: account }, { owner: FORMER_OWNER });
      const id = await webhook(db, account, ["*"], "off");
      await Promise.allSettled([
        webhooks.update(former, id, { state: "on" }),
        happen(account, "AccountOwnershipTransferred", { id: account }, { owner: NEW_OWNER }),
        webhooks.create(former, { url: "https://example.com" }),
      ]);
      for (const { state } of await webhooks.list(account)) expect(state).to.equal("off");
    }
  });

  it("remembers when keys expire, and stumbles over no number or name", async () => {
    const account = freshAccount();
    const keyId = `0x${randomBytes(32).toString("hex")}`;
    const huge = (2n ** 256n - 1n).toString();
    for (const [expiration, name] of [
      ["1800000000", 'a\u0000","expiration":"1700000000"'],
      [huge, "forever"],
      ["0", "never"],
    ])
      await happen(account, "UsageApiKeySet", { id: account, keyId, expiration, balance: "0", name });
    const kept = await db.selectFrom("key_expiries").selectAll().where("key_id", "=", keyId).execute();
    expect(kept).to.have.length(1);
    expect(kept[0]).to.include({ key_id: keyId, expires_at: 1_800_000_000, account_id: account, noticed: false });
  });

  it("has the outcome of each write, and after a reorg only one that differs", async () => {
    const account = freshAccount();
    const id = await webhook(db, account, ["write.*"]);
    await sql`insert into lanes (payer, address, next_nonce) values (990, ${`0x${"99".repeat(20)}`}, 0)
      on conflict do nothing`.execute(db);
    const submission = randomBytes(16).toString("hex");
    const nonce = Math.floor(Math.random() * 1e9);
    await insertWrite(db, { id: submission, account, payer: 990, nonce, state: "pending" });
    const become = (change: string): Promise<unknown> =>
      sql`update writes set ${sql.raw(change)} where id = ${submission}`.execute(db);
    await become(`state = 'done', result = '{"group_id":"1"}'`);
    // A reorg: the same outcome again, then another one.
    await become(`state = 'carried', result = null, before = '{"result":{"group_id":"1"}}'`);
    await become(`state = 'done', result = '{"group_id":"1"}'`);
    await become("state = 'carried', result = null");
    await become(`state = 'failed', error = '{"code":"write_reverted","detail":"","facts":{}}'`);
    await sql`delete from writes where id = ${submission}`.execute(db);
    const messages = await sent(db, id);
    expect(messages.map(({ type }) => type)).to.deep.equal(["write.confirmed", "write.failed"]);
    expect(messages[0]?.data).to.deep.equal({
      submission_id: submission,
      kind: "add_group",
      charged: false,
      result: { group_id: "1" },
    });
    expect(messages[1]?.data).to.include({ error: "write_reverted", changed: true });
  });

  it("says of a write that a reorg undid, and that fails now, that it is not charged", async () => {
    const account = freshAccount();
    const id = await webhook(db, account, ["write.*"]);
    await sql`insert into lanes (payer, address, next_nonce) values (990, ${`0x${"99".repeat(20)}`}, 0)
      on conflict do nothing`.execute(db);
    const submission = randomBytes(16).toString("hex");
    await insertWrite(db, {
      ...{ id: submission, account, payer: 990, state: "pending" },
      nonce: Math.floor(Math.random() * 1e9),
    });
    await sql`update writes set charged = true, billed = true, before = '{"result":{}}'
      where id = ${submission}`.execute(db);
    const told: SubmissionOutcome[] = [];
    const transactions = new Transactions(db, "elsewhere", {
      onBegin: async () => undefined,
      onOutcome: async (outcomes) => void told.push(...outcomes),
      onAbandon: async () => undefined,
    });
    const mined = { transactionHash: "0xhash", blockNumber: "0x7", blockHash: "0xblock" };
    const error = { code: "write_reverted", detail: "", facts: {} } as const;
    const failed = { state: "failed", error, charged: false } as const;
    await transactions.end(`of ${submission}`, mined, new Map([[submission, failed]]));
    await sql`delete from writes where id = ${submission}`.execute(db);
    const [message] = await sent(db, id);
    expect(message?.data).to.include({ error: "write_reverted", changed: true, charged: false });
    expect(told.map(({ charged, isUndone }) => [charged, isUndone])).to.deep.equal([[false, true]]);
  });

  it("says of a write that is executed without being charged for it that it is not charged", async () => {
    await sql`insert into lanes (payer, address, next_nonce) values (990, ${`0x${"99".repeat(20)}`}, 0)
      on conflict do nothing`.execute(db);
    const told: SubmissionOutcome[] = [];
    const transactions = new Transactions(db, "elsewhere", {
      onBegin: async () => undefined,
      onOutcome: async (outcomes) => void told.push(...outcomes),
      onAbandon: async () => undefined,
    });
    const mined = { transactionHash: "0xhash", blockNumber: "0x7", blockHash: "0xblock" };
    const isCharged = async (row: string): Promise<unknown> => {
      const account = freshAccount();
      const id = await webhook(db, account, ["write.*"]);
      const submission = randomBytes(16).toString("hex");
      const nonce = Math.floor(Math.random() * 1e9);
      await insertWrite(db, { id: submission, account, payer: 990, nonce, state: "pending" });
      await sql`update writes set ${sql.raw(row)} where id = ${submission}`.execute(db);
      const done = { state: "done", result: { group_id: "1" }, charged: true } as const;
      await transactions.end(`of ${submission}`, mined, new Map([[submission, done]]));
      await sql`delete from writes where id = ${submission}`.execute(db);
      return (await sent(db, id))[0]?.data["charged"];
    };
    // With credit held for it, without, and after a first outcome that has released the credit.
    expect(await isCharged("billed = true")).to.equal(true);
    expect(await isCharged("billed = false")).to.equal(false);
    expect(await isCharged(`billed = true, before = '{"error":{"code":"a","detail":"","facts":{}}}'`)).to.equal(false);
    expect(told.map(({ charged }) => charged)).to.deep.equal([true]);
  });
});
