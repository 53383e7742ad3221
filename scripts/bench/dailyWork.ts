/** What relayers ask their store for beside writes and runs: each statement that reads or changes a growing table. */
import { randomBytes, randomUUID } from "node:crypto";
import { newestClaimed } from "../../relayer/chain/events/reorg";
import { Events } from "../../relayer/chain/events/events";
import { Members } from "../../relayer/chain/events/members";
import { exportWrites } from "../../relayer/chain/reads/exportWrites";
import type { AccountId, ActionHash, Address, Cid, KeyId, PkpId } from "../../protocol/ids";
import type { Credits } from "../../relayer/credits";
import { creditIntent, recordClaim, recordReceipt, recordRefunded } from "../../relayer/credits/payments/books";
import type { Executor } from "../../relayer/executor/client";
import { BudgetStore } from "../../relayer/store/budgets";
import type { Db } from "../../relayer/store/database";
import { createIdempotencyStore } from "../../relayer/store/idempotency";
import { KnownCids } from "../../relayer/store/knownCids";
import { dropExpiredRates, fleetingLimiter, storeLimiter } from "../../relayer/store/rateLimits";
import { SharedCodeStore } from "../../relayer/store/sharedCode";
import { attachSeen, TriggerBook } from "../../relayer/triggers/book";
import { scheduleDue, storeFirings, workOf, type NewFiring } from "../../relayer/triggers/due";
import { Firings } from "../../relayer/triggers/firings";
import { HookRoom } from "../../relayer/triggers/room";
import { claim, dueWebhooks, finish, lateness, putBack, switchOffFlooded } from "../../relayer/webhooks/deliveries";
import { tellOfExpiries } from "../../relayer/webhooks/expiries";
import { Webhooks } from "../../relayer/webhooks/registry";

/** It owns a thousandth of the rows. */
const ACCOUNT = "old 1" as AccountId;
const OWNER = "owner 3" as Address;
const KEY = "old 1" as KeyId;
const PAGE = { number: 0, size: 50 };
const SCHEDULE = { schedule: { cron: "0 * * * *", time_zone: "UTC", missed: "skip" } };

const fresh = (): string => `0x${randomBytes(32).toString("hex")}`;

export async function dailyWork(db: Db, credits: Credits, instanceId: string): Promise<void> {
  await keysAndPayments(db, credits);
  await lists(db, credits);
  await requests(db, instanceId);
  await code(db);
  await webhooks(db);
  await triggers(db, instanceId);
  await credits.reservations.sweep();
}

async function keysAndPayments(db: Db, credits: Credits): Promise<void> {
  const { accounts } = credits;
  await accounts.ensureSpender({ accountId: ACCOUNT, keyId: fresh() as KeyId });
  await accounts.spentCents([KEY]);
  await accounts.setKeyLimits(ACCOUNT, KEY, { centsPerDay: 1_000, origins: [] });
  await accounts.limitedKeys(ACCOUNT, PAGE);
  await accounts.rememberEmail(ACCOUNT, "a@example.com");
  const intentId = `pi_${fresh()}`;
  await creditIntent(db, { intentId, accountId: ACCOUNT, amountCents: 500 });
  await recordRefunded(db, intentId, 5);
  const claimId = fresh();
  await recordClaim(db, { claimId, kind: "dispute", intentId, amountCents: 10, withdrawn: false, toldAt: 1 });
  await recordReceipt(db, intentId, "https://example.com");
  const { reservationId } = await credits.reservations.reserveRun({ accountId: ACCOUNT, keyId: KEY, limitMs: 1_000 });
  await credits.reservations.settleRun(reservationId, 5);
}

async function lists(db: Db, credits: Credits): Promise<void> {
  const [events, members] = [new Events(db), new Members(db)];
  await events.page(ACCOUNT, undefined, 100, "oldest");
  await events.page(ACCOUNT, undefined, 100, "newest");
  await events.accountsEverOwnedBy(OWNER);
  await events.isGiven("old 3" as AccountId, OWNER);
  await events.registrationsOf(OWNER);
  await members.groupsListing(ACCOUNT, [fresh() as PkpId]);
  await members.of(ACCOUNT, ["1", "2"]);
  await newestClaimed(db);
  const today = new Date().toISOString().slice(0, 10);
  await credits.runs.usage(ACCOUNT, { from: "2020-01-01", to: today } as never, PAGE);
  await credits.runs.lastUses(ACCOUNT, [fresh() as never]);
  await credits.runs.find(fresh());
  await credits.exports.runs(ACCOUNT, undefined, 500);
  await credits.exports.postings(ACCOUNT, undefined, 500);
  await exportWrites(db, ACCOUNT, undefined, 500);
  const budgets = new BudgetStore(db);
  const budget = { account: ACCOUNT, action: fresh() as ActionHash, cid: "cid" as Cid, name: "daily" };
  await budgets.note({ ...budget, window: "day", lastLimit: 1n } as never);
  await budgets.of(ACCOUNT, { offset: 0, limit: 50 });
}

async function requests(db: Db, instanceId: string): Promise<void> {
  const store = createIdempotencyStore(db, instanceId);
  for (const key of [randomUUID(), "old 1"]) {
    const name = { scope: ACCOUNT, key, bodyHash: "" };
    const { begun } = await store.begin(name);
    if (begun) await store.end(name, { end: "done", status: 200, body: {} });
  }
  for (const limiter of [storeLimiter(db), fleetingLimiter(db)]) await limiter("bench", 9, 1).consume(ACCOUNT);
  await dropExpiredRates(db);
}

async function code(db: Db): Promise<void> {
  const known = new KnownCids(db);
  await known.lookUp(["old 1" as ActionHash]);
  const shared = new SharedCodeStore(db, { totalBytes: 2 ** 40, days: 90 });
  const cid = fresh() as Cid;
  await shared.keep(ACCOUNT, cid, Buffer.from("code"));
  await shared.read(cid);
  await shared.use(ACCOUNT, "old 2" as Cid);
  await shared.trim();
  await shared.drop(cid);
}

async function webhooks(db: Db): Promise<void> {
  const executor = { call: async () => ({ messages: [] }) } as unknown as Executor;
  const registry = new Webhooks({ db, executor, httpsOnly: false });
  const owner = { accountId: `hooks of ${fresh()}` as AccountId };
  const { accountId } = owner;
  const { id } = await registry.create(owner, { url: "https://example.com" });
  await registry.update(owner, id, { description: "changed" });
  await registry.list(accountId);
  for (let message = 0; message < 2; message++) await registry.test(accountId, id);
  await dueWebhooks(db);
  await lateness(db);
  const [first, second] = await claim(db, id, 2);
  if (first !== undefined) await finish(db, first, { status: 200 });
  if (second !== undefined) await putBack(db, second);
  await registry.deliveries(accountId, id, { limit: 50 });
  await registry.deliveries(accountId, id, { limit: 50, state: "failed" });
  await registry.replay(accountId, id, undefined);
  await registry.replay(accountId, id, [first?.message.id ?? ""]);
  await switchOffFlooded(db);
  await registry.delete(accountId, id);
  const { id: fetched } = await registry.create(owner, {});
  const messageId = await registry.test(accountId, fetched);
  await registry.receive(accountId, fetched, []);
  await registry.receive(accountId, fetched, [{ messageId, status: 200 }]);
  await registry.delete(accountId, fetched);
  await tellOfExpiries(db, { key: async () => undefined });
}

async function triggers(db: Db, instanceId: string): Promise<void> {
  const [book, firings] = [new TriggerBook(db), new Firings({ db, instanceId, onPaused: async () => undefined })];
  const [id, accountId] = [fresh(), `triggers of ${fresh()}` as AccountId];
  const settings = SCHEDULE as never;
  const made = {
    id,
    accountId,
    keyId: fresh() as KeyId,
    name: "",
    kind: "schedule",
    settings,
    cid: "cid" as Cid,
  } as const;
  await book.add({ ...made, paramsSha256: "", code: undefined, sealed: "" });
  await book.activate(id, ["unattached"], undefined);
  await book.list(ACCOUNT, PAGE);
  await book.firings("old 1", PAGE);
  await book.firings("old 1", PAGE, 1);
  await book.isHook("old 1");
  await book.dropFiring(fresh());
  await book.one(id, accountId);
  await workOf(db, 500);
  await scheduleDue(db);
  const firing = (): NewFiring => {
    const cause = { causeKey: fresh(), cause: {}, kind: "schedule", dueAt: new Date() };
    return { id: fresh(), triggerId: id, accountId, ...cause };
  };
  await new HookRoom(db).take({ id, accountId }, (trx) => storeFirings(trx, [firing(), firing()]));
  const own = await firings.addOwn(firing());
  const claimed = [...(await firings.claim(2, 2)), ...(own === undefined ? [] : [own])];
  for (const [index, one] of claimed.entries()) {
    await firings.definition(one);
    await firings.begin(one);
    if (index === 0) await firings.retry(one, 0);
    else await firings.end(one, { outcome: index === 1 ? "succeeded" : "threw" });
  }
  await firings.releaseLost();
  await firings.interrupted();
  await firings.endPaused();
  await attachSeen(db, { headNumber: async () => undefined });
  await book.pause(id);
  await book.delete(id);
}
