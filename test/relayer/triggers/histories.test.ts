/**
 * Random histories of schedules and hooks in simulated time: two relayers on one store, whose statements fail at any
 * point, before or after they took effect; relayers and executors that are killed; clocks that jump. However it went,
 * no cause runs twice, none runs early, and none is forgotten.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import fc from "fast-check";
import { Kysely, PostgresDialect, sql, type PostgresPool, type RawBuilder } from "kysely";
import { Keyring } from "../../../executor/keys/keyring";
import { StatementKey } from "../../../executor/keys/statementKey";
import { Triggers as KeyholderTriggers } from "../../../executor/triggers/triggers";
import { KeywrightError } from "../../../protocol/errors";
import type { ExecutorAnswer, TriggerCredential } from "../../../protocol/executor";
import type { AccountId, Hash32, KeyId } from "../../../protocol/ids";
import type { KeyState } from "../../../protocol/keyState";
import { TRIGGER_LIMITS } from "../../../protocol/limits";
import { lastDue } from "../../../protocol/schedule";
import type { Settings } from "../../../protocol/trigger";
import type { RequestedRun } from "../../../relayer/executor/runExchange";
import type { RunQuestion } from "../../../relayer/executor/runBody";
import { Credits } from "../../../relayer/credits";
import type { Database } from "../../../relayer/store/database";
import type { Store } from "../../../relayer/store";
import { TriggerBook } from "../../../relayer/triggers/book";
import { newFiringId, scheduleDue, storeFirings } from "../../../relayer/triggers/due";
import { fire } from "../../../relayer/triggers/fire";
import { Firings } from "../../../relayer/triggers/firings";
import { SEED, count } from "../../support/counts";
import { fund } from "../../support/credits";
import { StatementFaults, failingPool } from "../../support/statementFaults";
import { testDatabaseUrl } from "../../support/store";
import { openTestStore } from "../../support/testStore";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
const START = Date.UTC(2026, 9, 24, 22, 0);
const SCHEDULES: readonly Settings[] = [
  { schedule: { cron: "*/7 * * * *", time_zone: "Europe/Berlin", missed: "skip" } },
  { schedule: { cron: "30 2 * * *", time_zone: "Europe/Berlin", missed: "once" } },
  { schedule: { cron: "* * * * *", time_zone: "America/St_Johns", missed: "once" } },
];
const HOOK: Settings = { hook: { verification: "none", respond: false } };

type Step =
  | { readonly type: "pass"; readonly seconds: number }
  | {
      readonly type: "turn";
      readonly relayer: number;
      readonly fault: number;
      readonly after: boolean;
      readonly dies: boolean;
    }
  | { readonly type: "both" }
  | { readonly type: "hook" }
  | { readonly type: "executor"; readonly mood: "up" | "down" | "dies" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("pass" as const),
      seconds: fc.constantFrom(1, 20, 61, 400, 4_000, 90_000, -30, -3_700),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("turn" as const),
      relayer: fc.integer({ min: 0, max: 1 }),
      fault: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 })),
      after: fc.boolean(),
      dies: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ type: "both" as const }) },
  { weight: 2, arbitrary: fc.constant({ type: "hook" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("executor" as const),
      mood: fc.constantFrom("up" as const, "down" as const, "dies" as const),
    }),
  },
);

describe("histories of triggers", function () {
  this.timeout(600_000);
  let store: Store;
  let pool: PostgresPool;
  before(async () => {
    store = await openTestStore({ databaseUrl: testDatabaseUrl, around: (inner) => (pool = inner) });
  });
  after(() => store?.close());

  /** One life of a relayer, with a connection of its own that fails where it is told to. */
  class Relayer {
    readonly faults = new StatementFaults();
    readonly db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: failingPool(pool, this.faults) }) });
    private constructor(
      readonly credits: Credits,
      readonly instanceId: string,
    ) {}

    static async start(): Promise<Relayer> {
      const instanceId = randomUUID();
      await sql`insert into instances (id) values (${instanceId})`.execute(store.db);
      await sql`update instances set renewed_at = now() + interval '1 day' where id = ${instanceId}`.execute(store.db);
      const relayer = new Relayer(undefined as never, instanceId);
      const credits = new Credits({
        db: relayer.db,
        instanceId,
        prices: { managementWriteCents: 1, runSecondCents: 1 },
        signup: { cents: 0, dailyCapCents: undefined, everyAccount: false },
        deployment: "histories",
        onError: () => undefined,
      });
      return Object.assign(relayer, { credits });
    }

    /** No statement of this life is answered any more, and its lease is over. */
    async die(): Promise<void> {
      this.faults.arm(1, "before");
      this.faults.staysDown = true;
      void this.credits.stop().catch(() => undefined);
      await sql`delete from instances where id = ${this.instanceId}`.execute(store.db);
    }

    async hit(): Promise<void> {
      while (!this.faults.wasHit) await sleep(1);
    }
  }

  class World {
    nowMs = START;
    mood: "up" | "down" | "dies" = "up";
    readonly runs: { readonly name: string; readonly atMs: number; readonly dueMs: number | undefined }[] = [];
    readonly hooks: string[] = [];
    readonly account = `0x${randomBytes(32).toString("hex")}` as AccountId;
    /** Forgets at once what has begun: the rows alone have to keep the promise, as across restarts of keyholders. */
    readonly keyholder: KeyholderTriggers;
    readonly relayers: Relayer[] = [];
    readonly #firings = new Map<number, Firings>();
    readonly triggers: { readonly id: string; readonly settings: Settings; readonly sealed: string }[] = [];

    constructor() {
      const keyring = new Keyring(randomBytes(32), `0x${"5a".repeat(32)}` as Hash32);
      this.keyholder = new KeyholderTriggers({
        keyring,
        statementKey: new StatementKey(keyring),
        paramsBytes: 65_536,
        logs: {} as never,
        callers: {} as never,
        chainId: 31337n,
        nowMs: () => this.nowMs,
        startedAtMs: START,
      });
    }

    get now(): RawBuilder<Date> {
      return sql<Date>`${new Date(this.nowMs)}::timestamptz`;
    }

    async start(): Promise<void> {
      await fund(store.db, this.account, 1_000_000);
      for (const index of [0, 1]) await this.restart(index);
      const book = new TriggerBook(store.db);
      for (const settings of [...SCHEDULES, HOOK]) {
        const minted = this.keyholder.mint({ accountId: this.account, cid: CID, params: "{}", settings });
        const { triggerId: id, sealed, paramsSha256 } = minted;
        const keyId = minted.apiKeyHash as KeyId;
        const kind = "hook" in settings ? "hook" : "schedule";
        await book.add({
          id,
          accountId: this.account,
          keyId,
          name: "t",
          kind,
          settings,
          cid: CID as never,
          paramsSha256,
          code: undefined,
          sealed,
        });
        await book.activate(id, ["unattached"], 0, this.now);
        this.triggers.push({ id, settings, sealed });
      }
    }

    /** A restarted relayer is another instance; the lease of the old one is over. */
    async restart(index: number): Promise<void> {
      await this.relayers[index]?.die();
      this.relayers[index] = await Relayer.start();
      this.#firings.delete(index);
    }

    #firingsOf(index: number, { db, instanceId }: Relayer): Firings {
      const made =
        this.#firings.get(index) ??
        new Firings({ db, instanceId, onPaused: async () => undefined, now: () => this.now });
      this.#firings.set(index, made);
      return made;
    }

    async turn(index: number): Promise<void> {
      const relayer = this.relayers[index] as Relayer;
      const { credits, db } = relayer;
      const firings = this.#firingsOf(index, relayer);
      await scheduleDue(db, { now: this.now });
      await firings.releaseLost();
      for (const lost of await firings.interrupted()) {
        const { run } = (await credits.runs.find(lost.runId)) ?? {};
        await firings.end(lost, { outcome: run?.outcome ?? "interrupted" });
      }
      for (const claimed of await firings.claim(20, 20)) {
        const parts = {
          executor: { askRun: (question: RunQuestion) => this.#asked(question) },
          credits: credits,
          firings,
          lastWrite: async () => 0,
          limitMs: async () => 1_000,
          onRan: () => undefined,
          onBegun: () => undefined,
          nowMs: () => this.nowMs,
        };
        await fire(parts, claimed).catch((error: unknown) => {
          firings.lose(claimed);
          throw error;
        });
      }
    }

    #asked(question: RunQuestion): RequestedRun {
      const state = { mayHaveRun: false };
      const credential = question.credential as TriggerCredential;
      const admitted = this.mood === "down" ? Promise.reject(unavailable()) : this.keyholder.admit(credential);
      const permission = admitted.then(({ keyId }): KeyState => ({
        ...{ keyId, accountId: this.account, isAccountKey: false, live: true, managed: true },
        ...{ expiresAtSeconds: 0n, capCents: 0n },
      }));
      permission.catch(() => undefined);
      const start = async (limitMs: number): Promise<ExecutorAnswer<"run">> => {
        const { triggerId, causeKey } = await admitted;
        const { cause } = credential;
        state.mayHaveRun = true;
        const dueMs = cause.type === "schedule" ? cause.dueAtSeconds * 1_000 : undefined;
        this.runs.push({ name: `${triggerId} ${causeKey}`, atMs: this.nowMs, dueMs });
        if (this.mood === "dies") throw unavailable();
        const usage = { durationMs: 5, limitMs };
        return {
          response: "null",
          logs: "",
          usage,
          serviceFault: false,
          isFree: false,
          cid: CID,
          pkpsUsed: [],
          receipt: `e30.e30.${"A".repeat(86)}`,
        };
      };
      return {
        permission,
        start,
        get mayHaveRun() {
          return state.mayHaveRun;
        },
        abandon: () => undefined,
        leave: () => undefined,
      };
    }

    async hook(): Promise<void> {
      const trigger = this.triggers.at(-1);
      if (trigger === undefined) return;
      const request = { accountId: this.account, sealed: trigger.sealed, body: "", headers: {} };
      const { accepted, key } = this.keyholder.acceptHook(request);
      const known = { id: newFiringId(), triggerId: trigger.id, accountId: this.account, causeKey: `hook:${key}` };
      const cause = { type: "hook", accepted };
      await storeFirings(store.db, [{ ...known, cause, kind: "hook", dueAt: new Date(this.nowMs) }], this.now);
      this.hooks.push(`hook:${key}`);
    }

    async take(one: Step): Promise<void> {
      if (one.type === "pass") this.nowMs += one.seconds * 1_000;
      else if (one.type === "hook") await this.hook();
      else if (one.type === "executor") this.mood = one.mood;
      else if (one.type === "both") await Promise.allSettled([this.turn(0), this.turn(1)]);
      else {
        const { relayer: index, fault, after, dies } = one;
        const { faults } = this.relayers[index] as Relayer;
        if (fault > 0) faults.arm(fault, after ? "after" : "before");
        faults.staysDown = dies && fault > 0;
        const turn = this.turn(index).catch(() => undefined);
        await (faults.staysDown ? Promise.race([turn, (this.relayers[index] as Relayer).hit()]) : turn);
        if (faults.staysDown && faults.wasHit) return this.restart(index);
        faults.staysDown = false;
        faults.disarm();
      }
    }

    /** Everything works again, and time enough passes for what waits. */
    async settle(): Promise<void> {
      this.mood = "up";
      this.nowMs = Math.max(this.nowMs, START);
      for (const index of [0, 1]) await this.restart(index);
      for (let turn = 0; turn < 12; turn += 1) {
        this.nowMs += 31_000;
        await this.turn(turn % 2);
      }
    }

    async stop(): Promise<void> {
      for (const relayer of this.relayers) await relayer.die();
      await sql`delete from triggers where account_id = ${this.account}`.execute(store.db);
    }
  }

  const unavailable = (): KeywrightError =>
    new KeywrightError("executor_unavailable", "down", {}, { retryAfterSeconds: 1 });

  async function check(world: World): Promise<void> {
    const names = world.runs.map(({ name }) => name);
    expect(new Set(names).size, "a cause ran twice").to.equal(names.length);
    for (const { dueMs, atMs } of world.runs)
      if (dueMs !== undefined) expect(atMs, "ran early").to.be.at.least(dueMs - TRIGGER_LIMITS.earlySeconds * 1_000);
    const rows = await store.db
      .selectFrom("trigger_firings")
      .selectAll()
      .where("account_id", "=", world.account)
      .execute();
    expect(
      rows.filter(({ state }) => state !== "ended").map(({ cause_key, outcome }) => [cause_key, outcome]),
    ).to.deep.equal([]);
    const ran = new Set(names);
    for (const { trigger_id, cause_key, outcome } of rows)
      if (outcome === "succeeded")
        expect(ran.has(`${trigger_id} ${cause_key}`), "recorded without a run").to.equal(true);
    for (const cause of world.hooks) expect(rows.filter(({ cause_key }) => cause_key === cause)).to.have.length(1);
    for (const { id, settings } of world.triggers) {
      if (!("schedule" in settings)) continue;
      const trigger = await store.db.selectFrom("triggers").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
      expect(trigger.next_due?.getTime(), "the schedule stopped").to.be.greaterThan(world.nowMs);
      const last = lastDue(settings.schedule, START, world.nowMs);
      const newest = rows.filter(({ trigger_id }) => trigger_id === id).map(({ due_at }) => due_at.getTime());
      if (last !== undefined) expect(Math.max(...newest), "the last due time was forgotten").to.be.at.least(last);
    }
  }

  async function play(steps: readonly Step[]): Promise<void> {
    const world = new World();
    await world.start();
    try {
      for (const one of steps) await world.take(one);
      await world.settle();
      await check(world);
    } finally {
      await world.stop();
    }
  }

  it("run no cause twice or early, and forget none", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), (steps) => play(steps)),
      { numRuns: count(15, 600), seed: SEED },
    );
  });

  it("hold through a kill at each statement of a turn", async () => {
    for (let fault = 1; fault <= count(19, 60); fault += count(3, 1))
      for (const after of [false, true])
        await play([
          { type: "hook" },
          { type: "pass", seconds: 61 },
          { type: "turn", relayer: 0, fault, after, dies: true },
          { type: "pass", seconds: 20 },
        ]);
  });
});
