/** Rows of triggers that last: what attaches them, which of them are dropped, and claims whose answer is lost. */
import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import { parseAddress, type AccountId, type Address, type KeyId } from "../../../protocol/ids";
import { Events } from "../../../relayer/chain/events/events";
import type { Store } from "../../../relayer/store";
import { dropOld } from "../../../relayer/store/retention";
import { attachSeen, TriggerBook } from "../../../relayer/triggers/book";
import type { NewFiring } from "../../../relayer/triggers/due";
import { Firings } from "../../../relayer/triggers/firings";
import { Triggers, type TriggersParts } from "../../../relayer/triggers";
import type { Claimed, NewTrigger } from "../../../relayer/triggers/types";
import { IdempotentOperation } from "../../../relayer/idempotentOperation";
import { TRIGGER_LIMITS } from "../../../protocol/limits";
import { expectRefusal, failureOf } from "../../support/refusal";
import { openTestStore } from "../../support/testStore";

const hash = (): string => `0x${randomBytes(32).toString("hex")}`;
const freshAddress = (): Address => parseAddress(`0x${randomBytes(20).toString("hex")}`) as Address;
const NAMES = ["a\u0000", '"keyId":"0x', `\\"keyId\\":\\"${hash()}\\"`, "\ud800", "plain"];

describe("triggers in the store", function () {
  this.timeout(30_000);
  let store: Store;
  let book: TriggerBook;
  before(async () => {
    store = await openTestStore();
    book = new TriggerBook(store.db);
  });
  after(() => store.close());

  async function added(
    accountId = hash() as AccountId,
    more: Partial<NewTrigger> = {},
  ): Promise<{ id: string; accountId: AccountId; keyId: KeyId }> {
    const trigger = { id: randomUUID(), accountId, keyId: hash() as KeyId };
    await book.add({
      ...{
        ...trigger,
        name: "t",
        kind: "schedule",
        settings: { schedule: { cron: "* * * * *", time_zone: "UTC", missed: "skip" } },
      },
      ...{
        cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as never,
        paramsSha256: hash(),
        sealed: "sealed",
        code: undefined,
      },
      ...more,
    });
    return trigger;
  }

  const happened = (account_id: string, name: string, args: object, owner: string | null = null): Promise<unknown> =>
    store.db
      .insertInto("chain_events")
      .values({
        ...{ account_id, name, args: JSON.stringify(args), owner, log_index: 0, block_number: 1 },
        ...{ block_hash: hash(), transaction_hash: hash() },
      })
      .execute();
  const stateOf = async (id: string): Promise<string | undefined> =>
    (await store.db.selectFrom("triggers").select("state").where("id", "=", id).executeTakeFirst())?.state;

  it("are attached once their key is set, whatever keys of any account are called", async () => {
    const [attached, waiting] = [await added(), await added()];
    for (const name of NAMES) {
      await happened(attached.accountId, "UsageApiKeySet", { id: attached.accountId, name, keyId: hash() });
      await happened(waiting.accountId, "UsageApiKeySet", { id: waiting.accountId, name, keyId: hash() });
    }
    await happened(attached.accountId, "UsageApiKeySet", { id: attached.accountId, name: "", keyId: attached.keyId });
    await attachSeen(store.db, { headNumber: async () => 1 });
    expect([await stateOf(attached.id), await stateOf(waiting.id)]).to.deep.equal(["active", "unattached"]);
  });

  it("and wallets are known by their registrations, whatever those are called", async () => {
    const wallet = freshAddress();
    for (const name of NAMES) {
      const [account, derivationPath] = [hash(), hash()];
      await happened(
        account,
        "WalletDerivationRegistered",
        { id: account, name, pkpId: wallet, derivationPath },
        wallet,
      );
      const registrations = await new Events(store.db).registrationsOf(wallet);
      expect(registrations.at(-1)).to.deep.equal({ accountId: account, derivationPath });
    }
  });

  const firingOf = ({ id: triggerId, accountId }: { id: string; accountId: AccountId }): NewFiring => ({
    ...{ id: randomUUID().replaceAll("-", ""), triggerId, accountId, cause: undefined, kind: "manual" },
    ...{ causeKey: randomUUID(), dueAt: new Date() },
  });
  const firings = (): Firings =>
    new Firings({ db: store.db, instanceId: "an instance", onPaused: async () => undefined });

  it("are dropped once deleted and without firings, or never attached; messages of runs before that", async () => {
    const [deleted, used, old, young] = [await added(), await added(), await added(), await added()];
    const claims = firings();
    const claimed = await claims.addOwn(firingOf(used));
    if (claimed === undefined) throw new Error("it was not stored");
    await claims.end(claimed, { outcome: "threw", detail: "what the params said" });
    for (const { id } of [deleted, used]) await book.delete(id);
    await sql`update triggers set created_at = now() - interval '40 days' where id = ${old.id}`.execute(store.db);
    const detail = async (): Promise<unknown> => (await book.firing(claimed.id))?.detail;
    await dropOld(store.db, { detailDays: 7, runRecordsDays: 30 });
    const states = async (): Promise<unknown> => Promise.all([deleted, used, old, young].map(({ id }) => stateOf(id)));
    expect(await states()).to.deep.equal([undefined, "deleted", undefined, "unattached"]);
    expect(await detail()).to.equal("what the params said");
    await sql`update trigger_firings set ended_at = now() - interval '8 days'`.execute(store.db);
    await dropOld(store.db, { detailDays: 7, runRecordsDays: 30 });
    expect([await detail(), (await book.firing(claimed.id))?.outcome]).to.deep.equal([undefined, "threw"]);
    await sql`update trigger_firings set ended_at = now() - interval '31 days'`.execute(store.db);
    await dropOld(store.db, { detailDays: 7, runRecordsDays: 30 });
    expect(await stateOf(used.id)).to.equal(undefined);
  });

  it("have a claim that is asked for again left to who made it, and one without an answer made again", async () => {
    const trigger = await added();
    const claims = firings();
    const firing = firingOf(trigger);
    expect(await claims.addOwn(firing)).to.not.equal(undefined);
    expect(await claims.addOwn(firing), "the same again").to.equal(undefined);
    await sql`update trigger_firings set started_at = now() - interval '1 minute'`.execute(store.db);
    await sql`insert into instances (id) values ('an instance')`.execute(store.db);
    expect((await claims.interrupted()).map(({ id }) => id)).to.not.include(firing.id);

    const failing = new Firings({
      db: store.db.withSchema("nowhere"),
      ...{ instanceId: "an instance", onPaused: async () => undefined },
    });
    await failureOf(failing.addOwn({ ...firing, kind: null as never }));
    expect(failing.claimed).to.equal(0);
  });

  it("are few and small while their owner has not attached them, however many are asked for at once", async () => {
    const accountId = hash() as AccountId;
    const byOwner = { isAttachedByOwner: true };
    const all = await Promise.allSettled(Array.from({ length: 60 }, () => added(accountId, byOwner)));
    expect(all.filter(({ status }) => status === "fulfilled")).to.have.length(TRIGGER_LIMITS.unattachedPerAccount);
    await expectRefusal(added(accountId, byOwner), "too_many_triggers");
    await added(accountId);
    const [mixed, byKey] = [hash() as AccountId, { ...byOwner, isAskedByKey: true }];
    const asked = await Promise.allSettled(Array.from({ length: 40 }, () => added(mixed, byKey)));
    expect(asked.filter(({ status }) => status === "fulfilled")).to.have.length(TRIGGER_LIMITS.unattachedOfKeys);
    await added(mixed, byOwner);
    const large = { ...byOwner, code: "x".repeat(1_048_576), accountId: hash() as AccountId };
    for (let count = 0; count < 16; count += 1) await added(large.accountId, large);
    await expectRefusal(added(large.accountId, large), "too_many_triggers");
  });

  it("keep nothing of their definition once deleted", async () => {
    const { id } = await added();
    await book.delete(id);
    const row = store.db.selectFrom("triggers").select(["sealed", "code"]).where("id", "=", id);
    expect(await row.executeTakeFirst()).to.deep.equal({ sealed: "", code: null });
  });

  it("are listed with firings as far as pages reach, and older ones until a time", async () => {
    const { id, accountId } = await added();
    await sql`insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before)
      select ${id} || n, ${id}, ${accountId}, n::text, 'hook', 'ended', to_timestamp(n), now()
      from generate_series(1, 12000) n`.execute(store.db);
    const page = (number: number, until?: number) => book.firings(id, { number, size: 1_000 }, until);
    expect((await page(0)).total).to.equal(10_001);
    expect((await page(10)).items.map(({ cause }) => cause))
      .to.include("1001")
      .and.not.include("1000");
    await expectRefusal(page(11), "invalid_value");
    const older = await page(0, 500);
    expect([older.total, older.items[0]?.cause]).to.deep.equal([500, "500"]);
    expect((await page(1, 500)).items).to.deep.equal([]);
  });

  it("have the end of a run take the place of its interruption, and nothing else", async () => {
    const claims = firings();
    const interrupted = { outcome: "interrupted" };
    const ran = { outcome: "succeeded", durationMs: 5, costCents: 1, receipt: "r" };
    const outcomeOf = async (id: string) => {
      const { outcome, costCents, receipt } = (await book.firing(id)) ?? {};
      return [outcome, costCents, receipt];
    };
    const claim = async (): Promise<Claimed> => {
      const claimed = await claims.addOwn(firingOf(await added()));
      if (claimed === undefined) throw new Error("it was not stored");
      return claimed;
    };
    const cutOff = await claim();
    await firings().end(cutOff, interrupted);
    await claims.end(cutOff, ran);
    expect(await outcomeOf(cutOff.id)).to.deep.equal(["succeeded", 1, "r"]);
    await claims.end(cutOff, { ...ran, outcome: "threw" });
    expect(await outcomeOf(cutOff.id)).to.deep.equal(["succeeded", 1, "r"]);
    const refused = await claim();
    await firings().end(refused, interrupted);
    await claims.end(refused, { outcome: "insufficient_credit" });
    expect(await outcomeOf(refused.id)).to.deep.equal(["interrupted", undefined, undefined]);
  });

  it("fire once for a hook's request that is repeated, whatever became of the first answer", async () => {
    const hookOf = async (account?: AccountId): Promise<string> => {
      const settings = { hook: { verification: "none", respond: false } } as const;
      const trigger = await added(account, { kind: "hook", settings });
      await book.activate(trigger.id, ["unattached"], undefined);
      return trigger.id;
    };
    const accountId = hash() as AccountId;
    const id = await hookOf(accountId);
    const failure = { isOn: false };
    const hurry = (): void => {
      if (failure.isOn) throw new Error("the answer is lost");
    };
    const triggers = new Triggers({
      ...{ db: store.db, book, headBlock: async () => undefined },
      executor: { call: async () => ({ accepted: "a", key: randomUUID() }) as never },
      engine: { make: async () => undefined, hurry },
    });
    const call = (operation?: IdempotentOperation, hook = id) =>
      triggers.acceptHook(hook, { body: Buffer.from("{}"), headers: {}, requestId: "r", operation });
    const first = new IdempotentOperation("one", false);
    failure.isOn = true;
    await failureOf(call(first));
    expect(first.end).to.equal("unknown");
    failure.isOn = false;
    const again = await call(new IdempotentOperation("one", true));
    expect(again.isRepeated).to.equal(true);
    expect((await call(new IdempotentOperation("one", true))).firingId).to.equal(again.firingId);
    for (const operation of [new IdempotentOperation("two", false), undefined, undefined])
      expect((await call(operation)).isRepeated).to.equal(false);
    expect((await book.firings(id, { number: 0, size: 10 })).total).to.equal(4);

    const [mine, other] = [await hookOf(accountId), await hookOf(accountId)];
    await sql`insert into trigger_firings (id, trigger_id, account_id, kind, state, cause_key, due_at, not_before)
      select 'waits ' || n, ${mine}, ${accountId}, 'hook', 'waiting', n::text, now() - interval '1 hour', now()
      from generate_series(1, ${TRIGGER_LIMITS.waitingPerHook}::int4) n`.execute(store.db);
    await expectRefusal(call(undefined, mine), "queue_full");
    // Those whose callers wait are running at once.
    await sql`update trigger_firings set state = 'running' where trigger_id = ${mine}`.execute(store.db);
    await expectRefusal(call(undefined, mine), "queue_full");
    expect((await call(undefined, other)).isRepeated, "the account's other hooks go on").to.equal(false);
  });

  describe("hooks that are called by many at once", () => {
    const { hooksPerMinute, waitingPerAccount, waitingPerHook } = TRIGGER_LIMITS;

    async function hookOf(accountId: AccountId, respond = false): Promise<string> {
      const settings = { hook: { verification: "none", respond } } as const;
      const { id } = await added(accountId, { kind: "hook", settings });
      await book.activate(id, ["unattached"], undefined);
      return id;
    }

    /** Calls of two relayers, which the keyholder answers once it has seen all: outcomes and how often each was. */
    async function outcomesOf(hooks: readonly string[], operations: readonly IdempotentOperation[] = []) {
      const allSeen = Promise.withResolvers<true>();
      let seen = 0;
      const claims = firings();
      const parts: TriggersParts = {
        ...{ db: store.db, book, headBlock: async () => undefined },
        executor: {
          call: async () => {
            if ((seen += 1) === hooks.length) allSeen.resolve(true);
            await allSeen.promise;
            return { accepted: "a", key: randomUUID() } as never;
          },
        },
        engine: {
          make: async (firing, _, within) => (await claims.addOwn(firing, within)) && { outcome: "succeeded" },
          hurry: () => undefined,
        },
      };
      const relayers = [new Triggers(parts), new Triggers(parts)] as const;
      const request = { body: Buffer.from("{}"), headers: {}, requestId: "r" };
      const outcomes = await Promise.all(
        hooks.map((hook, index) =>
          relayers[index % 2 === 0 ? 0 : 1].acceptHook(hook, { ...request, operation: operations[index] }).then(
            () => "accepted",
            (error: { code: string }) => error.code,
          ),
        ),
      );
      const counts: Record<string, number> = {};
      for (const one of outcomes) counts[one] = (counts[one] ?? 0) + 1;
      return counts;
    }
    const addWaiting = (id: string, accountId: string, state: string, count: number): Promise<unknown> =>
      sql`insert into trigger_firings (id, trigger_id, account_id, kind, state, cause_key, due_at, not_before)
        select ${id} || n, ${id}, ${accountId}, 'hook', ${state}, n::text, now(), now()
        from generate_series(1, ${count}::int4) n`.execute(store.db);

    for (const respond of [false, true])
      it(`keep no more firings of one than may wait${respond ? ", whose callers wait too" : ""}`, async () => {
        const hook = await hookOf(hash() as AccountId, respond);
        const operations = Array.from({ length: waitingPerHook + 50 }, () => new IdempotentOperation(hash(), false));
        const outcomes = await outcomesOf(Array<string>(operations.length).fill(hook), operations);
        expect(outcomes).to.deep.equal({ accepted: waitingPerHook, queue_full: 50 });
        expect(operations.filter(({ end }) => end === "nothing")).to.have.length(50);
      });

    it("keep no more of an account than may wait, whichever of its hooks are called", async () => {
      const account = hash() as AccountId;
      const hooks = await Promise.all(Array.from({ length: 6 }, () => hookOf(account)));
      for (const hook of hooks.slice(0, 4)) await addWaiting(hook, account, "waiting", waitingPerAccount / 4 - 2);
      const called = Array.from({ length: 40 }, (_, n) => hooks[4 + (n % 2)] ?? "");
      expect(await outcomesOf(called)).to.deep.equal({ accepted: 8, queue_full: 32 });
    });

    it("accept no more of them in a minute than one may", async () => {
      const account = hash() as AccountId;
      const hook = await hookOf(account);
      await addWaiting(hook, account, "ended", hooksPerMinute - 5);
      expect(await outcomesOf(Array<string>(20).fill(hook))).to.deep.equal({ accepted: 5, rate_limited: 15 });
    });
  });
});
