/** Deliveries: at least once, each by one relayer at a time, until they arrive or three days are over. */
import { expect } from "chai";
import { sql } from "kysely";
import type { KeywrightError } from "../../../protocol/errors";
import type { AccountId } from "../../../protocol/ids";
import { WEBHOOK_LIMITS, WEBHOOK_RETRY_SECONDS } from "../../../protocol/limits";
import type { Db } from "../../../relayer/store/database";
import { enqueue } from "../../../relayer/store/outbox";
import { claim, dueWebhooks, lateness, switchOffFlooded } from "../../../relayer/webhooks/deliveries";
import { Webhooks } from "../../../relayer/webhooks/registry";
import { Sender } from "../../../relayer/webhooks/sender";
import { eventually } from "../../support/chainBed";
import { freshAccount } from "../../support/credits";
import { sharedStore } from "../../support/store";
import { insertWebhook, startWebhookBed, type WebhookBed } from "../../support/webhookBed";
import { startReceiver, type Receiver } from "../../support/webhookReceiver";

describe("the sender of webhooks", function () {
  this.timeout(60_000);
  let db: Db;
  let bed: WebhookBed;
  let receiver: Receiver;
  let account: AccountId;
  const senders: Sender[] = [];
  const errors: unknown[] = [];

  before(async () => {
    db = (await sharedStore()).db;
    // A sender serves all there are: those of earlier tests would go out, too.
    await db.deleteFrom("webhooks").execute();
    bed = await startWebhookBed();
  });
  after(() => bed?.stop());
  beforeEach(async () => {
    receiver = await startReceiver();
    account = freshAccount();
  });
  afterEach(async () => {
    for (const sender of senders.splice(0)) await sender.stop();
    await receiver.stop();
    await db.deleteFrom("webhooks").where("account_id", "=", account).execute();
    expect(errors.splice(0).map(String)).to.deep.equal([]);
  });

  function startSender(mostLanes?: number, executor = bed.executor): void {
    const onError = (error: unknown): void => void errors.push(error);
    const limit = mostLanes === undefined ? {} : { mostLanes };
    const sender = new Sender({ db, executor, onAttempt: () => undefined, onError, ...limit });
    senders.push(sender);
    sender.start();
  }

  const tell = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) await db.transaction().execute((trx) => enqueue(trx, account, "run.failed", { n }));
  };
  const deliveries = (id: string) =>
    db.selectFrom("webhook_deliveries").selectAll().where("webhook_id", "=", id).orderBy("place").execute();
  const webhook = (id: string) => db.selectFrom("webhooks").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  /** As if the time of the next attempt had come. */
  const hasten = (id: string): Promise<unknown> =>
    sql`update webhook_deliveries set due_at = now() where webhook_id = ${id} and state = 'pending'`.execute(db);
  const nArrived = (): Set<unknown> => new Set(receiver.received.map(({ data }) => data["n"]));

  it("serves an account at once although others' receivers that hang hold all there is", async () => {
    const hanging = await startReceiver();
    hanging.answer(() => undefined);
    const others = [freshAccount(), freshAccount()];
    for (const other of others) {
      for (let n = 0; n < 2; n++) await insertWebhook(db, other, { url: hanging.url });
      await db.transaction().execute((trx) => enqueue(trx, other, "run.failed", {}));
    }
    startSender(4);
    await eventually("all receivers hang", () => hanging.received.length === 4);
    await insertWebhook(db, account, { url: receiver.url });
    await tell(3);
    await eventually("all have arrived", () => nArrived().size === 3, 5_000);
    await senders.pop()?.stop();
    await hanging.stop();
    await db.deleteFrom("webhooks").where("account_id", "in", others).execute();
  });

  it("finds an account's webhook at once although another account has thousands that are due", async () => {
    const crowd = freshAccount();
    await sql`with added as (
        insert into webhooks (id, account_id, url, events, description, credit_low_cents)
        select 'wh_' || ${crowd}::text || n, ${crowd}, ${receiver.url}, '["*"]', '', 100 from generate_series(1, 5000) n
        returning id
      ), event as (
        insert into webhook_events (id, account_id, type, data) values (${crowd}, ${crowd}, 'run.failed', '{}')
        returning place
      )
      insert into webhook_deliveries (webhook_id, place) select added.id, place from added, event`.execute(db);
    const id = await insertWebhook(db, account, { url: receiver.url });
    await tell(1);
    for (let turn = 0; turn < 5; turn++)
      expect((await dueWebhooks(db)).map(({ webhookId }) => webhookId)).to.include(id);
    await db.deleteFrom("webhooks").where("account_id", "=", crowd).execute();
  });

  it("delivers every event through failures, each by one relayer at a time", async () => {
    const open = new Set<string>();
    let overlaps = 0;
    let requests = 0;
    receiver.answer((response, { id: message }) => {
      if (open.has(message)) overlaps++;
      open.add(message);
      setTimeout(() => {
        open.delete(message);
        if (++requests % 3 === 1) response.destroy();
        else response.writeHead(requests % 3 === 0 ? 200 : 500).end();
      }, 20);
    });
    const id = await insertWebhook(db, account, { url: receiver.url });
    startSender();
    startSender();
    await tell(30);
    // Only what is not under way is hastened: a lease is the time of the next attempt.
    await eventually(
      "all have arrived",
      async () => {
        await sql`update webhook_deliveries set due_at = now() where webhook_id = ${id} and state = 'pending'
          and attempts > 0 and due_at <> attempted_at + interval '20 seconds'`.execute(db);
        return (await deliveries(id)).every(({ state }) => state === "delivered");
      },
      50_000,
    );
    expect(nArrived().size).to.equal(30);
    expect(overlaps).to.equal(0);
    expect((await webhook(id)).failing_since).to.equal(null);
  });

  it("repeats what a relayer had under way when it died", async () => {
    const id = await insertWebhook(db, account, { url: receiver.url });
    await tell(1);
    expect(await claim(db, id)).to.have.length(1);
    expect(await claim(db, id), "nobody else gets it meanwhile").to.deep.equal([]);
    startSender();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(receiver.received).to.deep.equal([]);
    await hasten(id);
    await receiver.next("run.failed");
  });

  it("gives up after the last attempt, switches the webhook off and tells the account's others", async () => {
    receiver.answer((response) => response.writeHead(503).end());
    const id = await insertWebhook(db, account, { url: receiver.url });
    const other = await insertWebhook(db, account, { events: ["webhook.*"], state: "on" });
    await tell(1);
    await db
      .updateTable("webhook_deliveries")
      .set({ attempts: WEBHOOK_RETRY_SECONDS.length })
      .where("webhook_id", "=", id)
      .execute();
    await db.updateTable("webhooks").set({ url: receiver.url }).where("id", "=", other).execute();
    startSender();
    await eventually("it is off", async () => (await webhook(id)).state === "off");
    expect((await webhook(id)).off_reason).to.equal("unreachable");
    expect((await deliveries(id))[0]).to.include({ state: "failed", status: 503 });
    expect((await receiver.next("webhook.off")).data).to.deep.equal({ webhook_id: id, reason: "unreachable" });
    const days = WEBHOOK_RETRY_SECONDS.reduce((sum, seconds) => sum + seconds, 0) / 86_400;
    expect(days).to.be.closeTo(3, 0.01);
  });

  it("counts nothing against a receiver that this service could not send to itself", async () => {
    const broken = await startWebhookBed();
    await broken.stop();
    const id = await insertWebhook(db, account, { url: receiver.url });
    await tell(1);
    const attempts = WEBHOOK_RETRY_SECONDS.length;
    await db.updateTable("webhook_deliveries").set({ attempts }).where("webhook_id", "=", id).execute();
    startSender(undefined, broken.executor);
    await eventually("it was tried", () => errors.length > 0);
    await senders.pop()?.stop();
    expect(errors.splice(0).map((error) => (error as KeywrightError).code)).to.include("executor_unavailable");
    expect(await webhook(id)).to.include({ state: "on", failing_since: null });
    expect((await deliveries(id))[0]).to.include({ state: "pending", attempts });
    expect((await deliveries(id))[0]?.due_at.getTime()).to.be.below(Date.now() + 31_000);
    await hasten(id);
    startSender();
    await eventually("it has arrived", () => nArrived().size === 1);
  });

  it("fails a message that is too long to be signed for good, and sends the others", async () => {
    const id = await insertWebhook(db, account, { url: receiver.url });
    const data = { text: "x".repeat(WEBHOOK_LIMITS.bodyBytes) };
    await db.transaction().execute((trx) => enqueue(trx, account, "run.failed", data));
    await tell(1);
    startSender();
    await eventually("the other has arrived", () => nArrived().has(0));
    await eventually("it has failed", async () => (await deliveries(id)).every(({ state }) => state !== "pending"));
    const [failed, delivered] = await deliveries(id);
    expect(failed).to.include({ state: "failed", failure: "the message is longer than 65536 bytes" });
    expect(delivered).to.include({ state: "delivered" });
    expect(await webhook(id)).to.include({ state: "on", failing_since: null });
  });

  it("does not keep the other messages from whoever fetches them", async () => {
    const id = await insertWebhook(db, account);
    await db.updateTable("webhooks").set({ url: null }).where("id", "=", id).execute();
    const data = { text: "x".repeat(WEBHOOK_LIMITS.bodyBytes) };
    await db.transaction().execute((trx) => enqueue(trx, account, "run.failed", data));
    await tell(1);
    const webhooks = new Webhooks({ db, executor: bed.executor, httpsOnly: true });
    const fetched = await webhooks.receive(account, id, []);
    expect(fetched.map(({ body }) => (JSON.parse(body) as { data: unknown }).data)).to.deep.equal([{ n: 0 }]);
    expect((await deliveries(id))[0]).to.include({ state: "failed" });
  });

  it("is switched off at once by a receiver that says it is gone, or by too much that waits", async () => {
    receiver.answer((response) => response.writeHead(410).end());
    const gone = await insertWebhook(db, account, { url: receiver.url, events: ["run.*"] });
    const flooded = await insertWebhook(db, account, { events: ["run.*"], url: "http://192.168.0.1" });
    await tell(3);
    await switchOffFlooded(db, 2);
    for (const [id, reason] of [[flooded, "too_many"] as const])
      expect((await webhook(id)).off_reason).to.equal(reason);
    await db.updateTable("webhooks").set({ state: "on", off_reason: null }).where("id", "=", gone).execute();
    startSender();
    await eventually("it is off", async () => (await webhook(gone)).off_reason === "gone");
    expect(
      (await deliveries(gone)).every(({ state }) => state === "pending"),
      "they stay for later",
    ).to.equal(true);
  });

  it("reports how late messages are, without receivers that fail", async () => {
    const id = await insertWebhook(db, account, { url: receiver.url });
    expect(await lateness(db)).to.be.below(60);
    await tell(1);
    await sql`update webhook_deliveries set due_at = now() - interval '1 hour' where webhook_id = ${id}`.execute(db);
    expect(await lateness(db)).to.be.within(3_500, 3_700);
    await sql`update webhooks set failing_since = now() where id = ${id}`.execute(db);
    expect(await lateness(db)).to.be.below(60);
  });
});
