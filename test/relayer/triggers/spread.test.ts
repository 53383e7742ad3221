/** A minute in which ten thousand triggers are due: shared fairly between accounts, and never with all places. */
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { sql, type RawBuilder } from "kysely";
import { expectInTime } from "../../support/inTime";
import { silent } from "../../support/sandbox";
import { firingsRead } from "../../support/statements";
import { openTestStore } from "../../support/testStore";
import { unavailable } from "../../../relayer/executor/errors";
import type { RequestedRun } from "../../../relayer/executor/runExchange";
import type { Store } from "../../../relayer/store";
import type { KeyState } from "../../../protocol/keyState";
import { KeywrightError } from "../../../protocol/errors";
import { TriggerBook } from "../../../relayer/triggers/book";
import { scheduleDue, storeFirings, type NewFiring } from "../../../relayer/triggers/due";
import { Engine, placesFor, type EngineOptions } from "../../../relayer/triggers/engine";
import { CROWDED, Firings } from "../../../relayer/triggers/firings";
import type { Claimed, Fired } from "../../../relayer/triggers/types";

const SMALL_ACCOUNTS = 99;
const EACH = 50;
const LARGEST = 10_000 - SMALL_ACCOUNTS * EACH;
const SCHEDULE = { schedule: { cron: "* * * * *", time_zone: "UTC", missed: "once" } };
const nameOf = (account: number): string => `0x${account.toString(16).padStart(64, "0")}`;

describe("a minute with ten thousand due triggers", function () {
  this.timeout(120_000);
  let store: Store;
  let instanceId: string;
  /** The present one: however long a test takes, no other comes. */
  let minute: RawBuilder<Date>;
  beforeEach(async () => {
    minute = sql<Date>`${new Date(Math.floor(Date.now() / 60_000) * 60_000)}::timestamptz`;
    store = await openTestStore();
    instanceId = randomUUID();
    await sql`insert into instances (id) values (${instanceId})`.execute(store.db);
  });
  afterEach(() => store?.close());

  /** The largest account's are the first of the table. */
  async function add(accounts: readonly (readonly [name: string, triggers: number])[]): Promise<void> {
    for (const [name, triggers] of accounts)
      await sql`insert into triggers (id, account_id, key_id, name, kind, settings, cid, params_sha256, sealed, state,
          next_due)
        select ${name} || i, ${name}, ${name} || i, 't', 'schedule', ${JSON.stringify(SCHEDULE)}::jsonb, 'Qm', '', '',
          'active', ${minute} from generate_series(1, ${triggers}::int4) as i`.execute(store.db);
  }
  const firingsOf = (instance = instanceId): Firings =>
    new Firings({ db: store.db, instanceId: instance, onPaused: async () => undefined });
  const end = (claimed: readonly Claimed[]): Promise<unknown> =>
    sql`update trigger_firings set state = 'ended' where id = any(array(
      select jsonb_array_elements_text(${JSON.stringify(claimed.map(({ id }) => id))}::jsonb)))`.execute(store.db);

  it("serves accounts in turn, whoever has most and however many relayers there are", async () => {
    const small = Array.from({ length: SMALL_ACCOUNTS }, (_, i) => [nameOf(i + 1), EACH] as const);
    await add([[nameOf(0), LARGEST], ...small]);
    let turns = 0;
    for (let due = 1; due > 0; turns += 1) due = (await scheduleDue(store.db, { now: minute })).found;
    const { rows } = await sql<{ count: number }>`select count(*)::int4 as count from trigger_firings`.execute(
      store.db,
    );
    expect(rows).to.deep.equal([{ count: 10_000 }]);
    expect(turns, "all at once would keep requests waiting").to.be.at.least(50);
    const relayers = [firingsOf(), firingsOf(randomUUID())];
    const served = new Map<string, number>();
    for (let claim = 0; claim < 100; claim += 1) {
      const relayer = relayers[claim % 2];
      const claimed = (await relayer?.claim(8, 4)) ?? [];
      for (const { accountId } of claimed) served.set(accountId, (served.get(accountId) ?? 0) + 1);
      await end(claimed);
      for (const one of claimed) relayer?.lose(one);
    }
    // 800 firings, 100 accounts, each relayer its own turn: eight each, one more or less for each relayer.
    expect(served.size).to.equal(SMALL_ACCOUNTS + 1);
    expect(Math.max(...served.values())).to.be.at.most(10);
    expect(Math.min(...served.values())).to.be.at.least(6);
  });

  const endedRows = () =>
    store.db.selectFrom("trigger_firings").select(["trigger_id", "outcome"]).where("state", "=", "ended").execute();

  it("ends what waits when a trigger is paused, but not what a crowded one has gathered", async () => {
    await add([[nameOf(1), 5]]);
    const firings = firingsOf();
    await scheduleDue(store.db, { now: minute });
    const set = (id: unknown, reason: string | null): Promise<unknown> =>
      sql`update triggers set state = 'paused', reason = ${reason} where id = ${id}`.execute(store.db);
    const [mine] = await firings.claim(1, 1);
    const taken = mine?.triggerId;
    const others = [1, 2, 3, 4, 5].map((n) => `${nameOf(1)}${n}`).filter((id) => id !== taken);
    const [waits, crowded, , stopped] = others;
    const book = new TriggerBook(store.db);
    await book.pause(String(stopped));
    expect(await endedRows(), "at once").to.deep.equal([{ trigger_id: stopped, outcome: "paused" }]);
    await book.pause(String(taken));
    expect(await firings.begin(mine as Claimed), "begins after the pause").to.equal(false);
    await firings.retry(mine as Claimed, 0);
    await set(waits, "5 firings in a row failed, the last one with threw.");
    await set(crowded, CROWDED);
    const claimed = await firings.claim(10, 10);
    expect(claimed.map(({ triggerId }) => triggerId)).to.have.members(others.slice(1, 3));
    for (const one of claimed) expect(await firings.begin(one)).to.equal(true);
    await firings.endPaused();
    expect(await endedRows()).to.have.deep.members([
      { trigger_id: stopped, outcome: "paused" },
      { trigger_id: taken, outcome: "paused" },
      { trigger_id: waits, outcome: "paused" },
    ]);
  });

  for (const reason of [null, CROWDED])
    it(`ends what waits of ${reason ? "a crowded" : "an active"} trigger that fails five times in a row`, async () => {
      await add([[nameOf(1), 1]]);
      const [triggerId, accountId] = [`${nameOf(1)}1`, nameOf(1)];
      const firing = (n: number): NewFiring => ({
        ...{ id: String(n), triggerId, accountId, causeKey: String(n), cause: {}, kind: "hook", dueAt: new Date() },
      });
      await storeFirings(
        store.db,
        Array.from({ length: 40 }, (_, n) => firing(n)),
      );
      await sql`update triggers set state = ${reason ? "paused" : "active"}, reason = ${reason}`.execute(store.db);
      const told: string[] = [];
      const onPaused = async (_: unknown, paused: { reason: string }): Promise<void> => void told.push(paused.reason);
      const firings = new Firings({ db: store.db, instanceId, onPaused });
      const made: Fired[] = [];
      const make = async (fired: Fired): Promise<void> => {
        for (const one of await firings.claim(1, 1)) {
          made.push(fired);
          await firings.end(one, fired);
        }
      };
      const ofTheService = ["chain_unavailable", "executor_unavailable", "code_unavailable", "timed_out"] as const;
      for (const outcome of ofTheService) await make({ outcome, isRefused: true });
      for (const outcome of ["preempted", "sandbox_crashed"]) await make({ outcome, durationMs: 1 });
      for (let turn = 0; turn < 4; turn += 1) await make({ outcome: "timed_out", durationMs: 1 });
      await make({ outcome: "succeeded" });
      expect([made.length, told], "not in a row").to.deep.equal([11, []]);
      for (let turn = 0; turn < 30; turn += 1) await make({ outcome: "insufficient_credit", isRefused: true });
      expect(made).to.have.length(16);
      expect(told).to.deep.equal(["5 firings in a row failed, the last one with insufficient_credit."]);
      expect((await endedRows()).filter(({ outcome }) => outcome === "paused")).to.have.length(24);
    });

  /** Three places, and this executor. */
  const engineOf = (
    askRun: unknown,
    places: Partial<EngineOptions> = { places: 3, placesEach: 3 },
    credits: unknown = {},
  ): Engine =>
    new Engine({
      ...{ db: store.db, firings: firingsOf(), credits: credits as never, executor: { askRun } as never, log: silent },
      ...{ search: { turn: async () => undefined } as never, leases: { claim: async () => false } },
      ...{ lastWrite: async () => 0, limitMs: async () => 1_000, nowMs: () => Date.now(), turnMs: 5 },
      ...{ onRan: () => undefined, onBegun: () => undefined },
      ...{ places: 3, placesEach: 3, ...places },
    });
  /** A run that the contract refuses in the end. */
  const refusedRun = (permission: Promise<never>): RequestedRun => {
    permission.catch(() => undefined);
    const none = { abandon: () => undefined, leave: () => undefined };
    return { permission, ...none, mayHaveRun: false, start: () => Promise.reject(new Error("no")) };
  };

  it("serves other accounts while one's hooks are called by many who wait for the answers", async () => {
    await add([
      [nameOf(1), 1],
      [nameOf(2), 1],
    ]);
    await scheduleDue(store.db, { now: minute });
    await sql`update trigger_firings set state = 'ended' where account_id = ${nameOf(1)}`.execute(store.db);
    let isOpen = false;
    const asked = new Set<string>();
    const askRun = (_: unknown, { account }: { readonly account: string }): RequestedRun => {
      asked.add(account);
      const permission = (async () => {
        while (!isOpen) await sleep(5);
        throw new KeywrightError("unknown_key", "closed");
      })();
      return refusedRun(permission);
    };
    const engine = engineOf(askRun);
    const known = { triggerId: `${nameOf(1)}1`, accountId: nameOf(1), kind: "hook", dueAt: new Date() };
    const calls = Array.from({ length: 20 }, (_, i) =>
      engine.make({ ...known, id: randomBytes(16).toString("hex"), causeKey: `hook:${i}`, cause: {} }),
    );
    while (!asked.has(nameOf(1))) await sleep(5);
    engine.start();
    try {
      for (let waited = 0; !asked.has(nameOf(2)) && waited < 1_000; waited += 1) await sleep(5);
      expect([...asked]).to.deep.equal([nameOf(1), nameOf(2)]);
    } finally {
      isOpen = true;
      await Promise.all(calls);
      await engine.stop();
    }
  });

  /** Runs that the contract refuses once the gate is open. */
  function gatedRuns(isLong: (account: string) => boolean) {
    const gate = { isOpen: false, asked: [] as string[] };
    const askRun = (_: unknown, { account }: { readonly account: string }): RequestedRun => {
      gate.asked.push(account);
      const permission = (async () => {
        while (isLong(account) && !gate.isOpen) await sleep(5);
        throw new KeywrightError("unknown_key", "closed");
      })();
      return refusedRun(permission);
    };
    return Object.assign(gate, { askRun });
  }

  it("serves a newcomer at once while the firings of 64 accounts sleep, and thousands more of them wait", async () => {
    const VICTIM = nameOf(1_000);
    const hostile = Array.from({ length: 64 }, (_, i) => [nameOf(i), i < 4 ? 400 : 3] as const);
    await add(hostile);
    while ((await scheduleDue(store.db, { now: minute })).found > 0);
    const gate = gatedRuns((account) => account !== VICTIM);
    const engine = engineOf(gate.askRun, placesFor(8));
    engine.start();
    try {
      for (let waited = 0; new Set(gate.asked).size < 64 && waited < 400; waited += 1) await sleep(5);
      expect(new Set(gate.asked).size, "each account has one under way").to.equal(64);
      await sleep(500);
      await add([[VICTIM, 3]]);
      const since = performance.now();
      while (gate.asked.filter((account) => account === VICTIM).length < 3 && performance.now() - since < 5_000)
        await sleep(5);
      expectInTime(performance.now() - since, 1_000);
      const each = hostile.map(([name]) => gate.asked.filter((account) => account === name).length);
      expect(Math.max(...each), "of one account at once").to.equal(4);
    } finally {
      gate.isOpen = true;
      await sql`update trigger_firings set state = 'ended' where state = 'waiting'`.execute(store.db);
      await engine.stop();
    }
  });

  it("claims no more of an account than it may have, beside those of it that are under way", async () => {
    await add([
      [nameOf(1), 50],
      [nameOf(2), 50],
    ]);
    await scheduleDue(store.db, { now: minute });
    const firings = firingsOf();
    const first = await firings.claim(6, 5);
    const second = await firings.claim(100, 5);
    const count = (name: string) => [...first, ...second].filter(({ accountId }) => accountId === name).length;
    expect([count(nameOf(1)), count(nameOf(2))]).to.deep.equal([5, 5]);
    await add([[nameOf(3), 50]]);
    await scheduleDue(store.db, { now: minute });
    for (const one of first) await firings.retry(one, 60_000);
    const next = await firings.claim(2, 5);
    expect(
      next.map(({ accountId }) => accountId),
      "who has none comes first",
    ).to.include(nameOf(3));
  });

  /** An engine whose firings all wait for the end of `work`. */
  async function withEngine(more: Partial<EngineOptions>, work: () => Promise<void>): Promise<void> {
    const gate = gatedRuns(() => true);
    const engine = engineOf(gate.askRun, { ...placesFor(8), ...more });
    engine.start();
    try {
      await work();
    } finally {
      gate.isOpen = true;
      await sql`update trigger_firings set state = 'ended' where state = 'waiting'`.execute(store.db);
      await engine.stop();
    }
  }
  const stored = () => store.db.selectFrom("trigger_firings").select(["account_id", "not_before", "outcome"]).execute();
  const untilStored = async (count: number): Promise<Awaited<ReturnType<typeof stored>>> => {
    for (let waited = 0; (await stored()).length < count && waited < 400; waited += 1) await sleep(20);
    return stored();
  };

  it("turns all due times into firings in one turn, those of each account among the first", async () => {
    const [crowd, last] = [Array.from({ length: 120 }, (_, i) => nameOf(i)), nameOf(1_000)];
    await add([...crowd.map((name) => [name, 20] as const), [last, 1]]);
    let looks = 0;
    const now = (): RawBuilder<Date> => sql`${minute} + ${(looks += 1)} * interval '1 millisecond'`;
    await withEngine({ turnMs: 60_000, now }, async () => {
      const rows = await untilStored(2_401);
      expect(rows).to.have.length(2_401);
      const at = rows.find(({ account_id }) => account_id === last)?.not_before ?? 0;
      expect(rows.filter(({ not_before }) => not_before < at).length).to.be.at.most(100);
    });
  });

  it("takes none for late that it comes to late itself", async () => {
    await add([1, 2, 3].map((n) => [nameOf(n), 100] as const));
    const settings = { schedule: { cron: "0 0 1 1 *", time_zone: "UTC", missed: "skip" } };
    await sql`update triggers set settings = ${JSON.stringify(settings)}::jsonb`.execute(store.db);
    let seconds = 0;
    const now = (): RawBuilder<Date> => sql`${minute} + ${(seconds += 20)} * interval '1 second'`;
    await withEngine({ now }, async () => {
      const rows = await untilStored(300);
      expect(rows).to.have.length(300);
      expect(seconds).to.be.at.least(60);
      expect(rows.filter(({ outcome }) => outcome !== null)).to.deep.equal([]);
    });
  });

  it("takes those for late that were due while it did not look", async () => {
    await add([[nameOf(1), 2]]);
    await sql`update triggers set settings = jsonb_set(settings, '{schedule,missed}', '"skip"')`.execute(store.db);
    await withEngine({ now: () => sql`${minute} + interval '31 seconds'` }, async () => {
      expect((await untilStored(2)).map(({ outcome }) => outcome)).to.deep.equal(["missed", "missed"]);
    });
  });

  /** Of one account, one for each trigger, with the time before which it is not tried again. */
  const addWaiting = (account: string, count: number, due: string, notBefore: string): Promise<unknown> =>
    sql`insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before)
      select md5(random()::text), id, account_id, ${due}, 'hook', 'waiting', now() + ${due}::interval,
        now() + ${notBefore}::interval
      from triggers where account_id = ${account} order by id limit ${count}`.execute(store.db);

  it("reads none of those that are tried again later when it claims others", async () => {
    await add([[nameOf(1), 2_000]]);
    await addWaiting(nameOf(1), 2_000, "-1 hour", "5 minutes");
    await addWaiting(nameOf(1), 5, "0", "0");
    await sql`analyze trigger_firings`.execute(store.db);
    const before = await firingsRead(store.db);
    expect(await firingsOf().claim(20, 20)).to.have.length(5);
    expect((await firingsRead(store.db)) - before).to.be.below(100);
  });

  it("makes what is due now while an account's older ones are tried again and again", async () => {
    await add([[nameOf(1), 50]]);
    await addWaiting(nameOf(1), 50, "-1 hour", "-1 second");
    await addWaiting(nameOf(1), 1, "0", "0");
    const firings = firingsOf();
    const tries: number[] = [];
    for (let turn = 0, isMade = false; turn < 20 && !isMade; turn += 1) {
      const claimed = await firings.claim(3, 3);
      isMade = claimed.some(({ dueAt }) => Date.now() - dueAt.getTime() < 600_000);
      tries.push(...claimed.map(({ attempt }) => attempt));
      for (const one of claimed) await firings.retry(one, 0);
    }
    // After each of those that were to be tried again before it was due, once.
    expect([tries.length, Math.max(...tries)]).to.deep.equal([51, 1]);
  });

  it("loads the code of few firings at a time, but waits with those of no one run", async () => {
    await add([
      [nameOf(1), 12],
      [nameOf(2), 1],
    ]);
    const code = "x".repeat(12 * 1_024 * 1_024);
    await sql`update triggers set code = ${code} where account_id = ${nameOf(1)}`.execute(store.db);
    await scheduleDue(store.db, { now: minute });
    const gate = gatedRuns(() => true);
    const engine = engineOf(gate.askRun, { places: 64, placesEach: 16 });
    engine.start();
    try {
      for (let waited = 0; !gate.asked.includes(nameOf(2)) && waited < 1_000; waited += 1) await sleep(5);
      await sleep(300);
      expect(gate.asked).to.include(nameOf(2));
      expect(gate.asked.length).to.be.within(2, 8);
    } finally {
      gate.isOpen = true;
      await sql`update trigger_firings set state = 'ended' where state = 'waiting'`.execute(store.db);
      await engine.stop();
    }
  });

  it("leaves the executor's queue when nobody waits for a run by hand any more, unpaid", async () => {
    await add([[nameOf(1), 1]]);
    const calls: string[] = [];
    const startOf = Promise.withResolvers<never>();
    const askRun = (): RequestedRun => ({
      permission: Promise.resolve({ accountId: nameOf(1), isAccountKey: true, capCents: 0n } as unknown as KeyState),
      start: () => (calls.push("start"), startOf.promise),
      leave: () => {
        calls.push("leave");
        startOf.reject(new KeywrightError("timed_out", "It left the queue."));
      },
      abandon: () => undefined,
      mayHaveRun: false,
    });
    const reservations = {
      reserveRun: async () => ({ reservationId: "", limitMs: 1_000 }),
      releaseRun: async () => void calls.push("release"),
    };
    const engine = engineOf(askRun, undefined, { reservations });
    const id = randomBytes(16).toString("hex");
    const cause = { type: "manual", id, by: { type: "key", key: "" } } as const;
    const known = { id, triggerId: `${nameOf(1)}1`, accountId: nameOf(1), causeKey: `run:${id}` };
    const gone = new AbortController();
    const made = engine.make(
      { ...known, cause: undefined, kind: "manual", dueAt: new Date() },
      { cause, spender: undefined, signal: gone.signal },
    );
    while (!calls.includes("start")) await sleep(5);
    gone.abort();
    expect((await made)?.outcome).to.equal("timed_out");
    expect(calls).to.deep.equal(["start", "leave", "release"]);
    await engine.stop();
  });

  it("takes no more places than its own, and makes a run by hand at once", async () => {
    await add([
      [nameOf(1), 40],
      [nameOf(2), 40],
    ]);
    let isOpen = false;
    const asked: string[] = [];
    const begun = { now: 0, most: 0 };
    /** An executor whose runs end when the gate is open; the contract then refuses them. */
    const askRun = (question: { readonly credential: object }): RequestedRun => {
      const cause = (question.credential as { readonly cause: { readonly type: string } }).cause;
      asked.push(cause.type);
      begun.most = Math.max(begun.most, (begun.now += 1));
      const permission = (async () => {
        while (!isOpen) await sleep(5);
        begun.now -= 1;
        throw unavailable("closed", undefined);
      })();
      return refusedRun(permission);
    };
    const engine = engineOf(askRun);
    engine.start();
    try {
      // One of the three places is kept for an account that is not here yet.
      while (asked.length < 2) await sleep(5);
      const id = randomBytes(16).toString("hex");
      const cause = { type: "manual", id, by: { type: "key", key: "" } } as const;
      const known = { id, triggerId: `${nameOf(1)}1`, accountId: nameOf(1), causeKey: `run:${id}` };
      const byHand = engine.make(
        { ...known, cause: undefined, kind: "manual", dueAt: new Date() },
        { cause, spender: undefined },
      );
      while (!asked.includes("manual")) await sleep(5);
      expect(begun.now).to.be.at.most(4);
      isOpen = true;
      expect((await byHand)?.outcome).to.equal("executor_unavailable");
    } finally {
      isOpen = true;
      await engine.stop();
    }
    expect(begun.most).to.be.at.most(4);
  });
});
