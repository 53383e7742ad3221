/**
 * What a relayer can make of a trigger that asks for any cause at any time, and may have the keyholder restarted:
 * random histories against the keyholder's own module, whose clock the test sets.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { Keyring } from "../../../executor/keys/keyring";
import { StatementKey } from "../../../executor/keys/statementKey";
import { Once } from "../../../executor/triggers/once";
import { Triggers } from "../../../executor/triggers/triggers";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId, Hash32 } from "../../../protocol/ids";
import { TRIGGER_LIMITS } from "../../../protocol/limits";
import { isDueTime, nextDue } from "../../../protocol/schedule";
import type { Cause, Settings } from "../../../protocol/trigger";
import { SEED, count } from "../../support/counts";

const ACCOUNT = `0x${"a1".repeat(32)}` as AccountId;
const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
const START = Date.UTC(2026, 9, 24, 23, 0);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const keyring = new Keyring(randomBytes(32), `0x${"5a".repeat(32)}` as Hash32);

interface Run {
  readonly name: string;
  readonly atMs: number;
  readonly bornMs: number;
  readonly life: number;
}

/** One trigger, and lives of keyholders that know nothing of each other. */
class World {
  nowMs = START;
  readonly runs: Run[] = [];
  readonly accepted: { readonly text: string; readonly atMs: number }[] = [];
  readonly sealed: string;
  #life = 0;
  #startedAtMs = START - HOUR_MS;
  #keyholder: Triggers;

  constructor(readonly settings: Settings) {
    this.#keyholder = this.#start();
    this.sealed = this.#keyholder.mint({ accountId: ACCOUNT, cid: CID, params: "{}", settings }).sealed;
  }

  #start(): Triggers {
    const startedAtMs = this.#startedAtMs;
    return new Triggers({
      ...{ keyring, statementKey: new StatementKey(keyring), paramsBytes: 65_536, chainId: 31_337n, startedAtMs },
      logs: {
        logAt: async (_chain: number, _filter: unknown, { blockNumber }: { blockNumber: number }) => logOf(blockNumber),
        requireChain: () => undefined,
      },
      callers: {} as never,
      nowMs: () => this.nowMs,
    });
  }

  restart(): void {
    this.#life += 1;
    this.#startedAtMs = this.nowMs;
    this.#keyholder = this.#start();
  }

  accept(): void {
    const request = { accountId: ACCOUNT, sealed: this.sealed, body: "", headers: {} };
    this.accepted.push({ text: this.#keyholder.acceptHook(request).accepted, atMs: this.nowMs });
  }

  async ask(cause: Cause, bornMs: number): Promise<void> {
    try {
      const firing = await this.#keyholder.admit({ type: "trigger", accountId: ACCOUNT, sealed: this.sealed, cause });
      firing.begin();
      const name = cause.type === "event" ? `log of block ${cause.blockNumber}` : firing.causeKey;
      this.runs.push({ name, atMs: this.nowMs, bornMs, life: this.#life });
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      expect(["trigger_not_due", "already_ran"]).to.include(error.code);
    }
  }
}

/** Block number = minutes since 1970. */
const logOf = (blockNumber: number) => ({
  ...{ address: "0x", topics: [], data: "0x", logIndex: 0 },
  blockSeconds: blockNumber * 60,
});
const eventCause = (minute: number, isShouted: boolean): Cause => {
  const digits = minute.toString(16).padStart(64, "0");
  const transactionHash = `0x${isShouted ? digits.toUpperCase() : digits}`;
  return { type: "event", blockNumber: minute, blockHash: `0x${"0".repeat(64)}`, place: 0, transactionHash };
};

type Step =
  | { readonly do: "wait"; readonly seconds: number }
  | { readonly do: "restart" }
  | { readonly do: "accept" }
  | { readonly do: "ask"; readonly back: number; readonly isShouted: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(1, 30, 61, 400, 7_000, 90_000) }),
  },
  { weight: 2, arbitrary: fc.constant({ do: "restart" as const }) },
  { weight: 2, arbitrary: fc.constant({ do: "accept" as const }) },
  // In minutes before now; before 0 the future.
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("ask" as const),
      back: fc.oneof(fc.integer({ min: -3, max: 8 }), fc.nat(3_000)),
      isShouted: fc.boolean(),
    }),
  },
);

async function play(settings: Settings, steps: readonly Step[]): Promise<readonly Run[]> {
  const world = new World(settings);
  for (const one of steps) {
    if (one.do === "wait") world.nowMs += one.seconds * 1_000;
    else if (one.do === "restart") world.restart();
    else if (one.do === "accept") {
      if ("hook" in settings) world.accept();
    } else {
      const minute = Math.floor(world.nowMs / MINUTE_MS) - one.back;
      const hook = world.accepted[one.back % Math.max(1, world.accepted.length)];
      if ("schedule" in settings) await world.ask({ type: "schedule", dueAtSeconds: minute * 60 }, minute * MINUTE_MS);
      else if ("event" in settings) await world.ask(eventCause(minute, one.isShouted), minute * MINUTE_MS);
      else if (hook !== undefined) await world.ask({ type: "hook", accepted: hook.text }, hook.atMs);
    }
  }
  return world.runs;
}

const times = (runs: readonly Run[]): ReadonlyMap<string, readonly Run[]> => Map.groupBy(runs, ({ name }) => name);

const property = (settings: Settings, check: (runs: readonly Run[]) => void): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) =>
      check(await play(settings, steps)),
    ),
    { numRuns: count(150, 5_000), seed: SEED },
  );

const CRONS = ["* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *"];
const EVENT = { address: `0x${"0".repeat(40)}`, topics: [], confirmations: 1 };

const LIMITS = { skip: "each once", once: "each once in a life of the keyholder" } as const;

describe("a relayer that lies", function () {
  this.timeout(120_000);

  for (const missed of ["skip", "once"] as const)
    for (const cron of CRONS)
      it(`makes "${cron}" with ${missed} fire at due times only, ${LIMITS[missed]}`, () => {
        const schedule = { cron, time_zone: "Europe/Berlin", missed };
        return property({ schedule }, (runs) => {
          for (const { atMs, bornMs } of runs) {
            expect(isDueTime(schedule, bornMs), "no due time").to.equal(true);
            expect(atMs).to.be.at.least(bornMs - TRIGGER_LIMITS.earlySeconds * 1_000);
            const last = missed === "skip" ? bornMs : Number(nextDue(schedule, bornMs));
            expect(atMs).to.be.at.most(last + TRIGGER_LIMITS.lateSeconds * 1_000);
          }
          for (const [, same] of times(runs)) {
            if (missed === "skip") expect(same, "a due time fired again").to.have.length(1);
            else expect(new Set(same.map(({ life }) => life)).size, "again in one life").to.equal(same.length);
          }
        });
      });

  for (const missed of ["skip", undefined] as const)
    for (const settings of [
      { event: { ...EVENT, ...(missed && { missed }) } },
      { hook: { verification: "none", respond: false, ...(missed && { missed }) } },
    ] as const)
      it(`makes each ${"event" in settings ? "log" : "request"} fire, ${LIMITS[missed ?? "once"]}`, () =>
        property(settings, (runs) => {
          for (const [, same] of times(runs)) {
            if (missed === "skip") expect(same).to.have.length(1);
            else expect(new Set(same.map(({ life }) => life)).size, "again in one life").to.equal(same.length);
          }
          const waitMs = TRIGGER_LIMITS.waitHours * HOUR_MS;
          for (const { atMs, bornMs } of runs) expect(atMs).to.be.at.most(bornMs + waitMs + MINUTE_MS);
        }));

  it("has no log of a block far in the future fire: forgotten, it would take all until then for fired", async () => {
    const world = new World({ event: EVENT });
    for (const ahead of [3 * HOUR_MS, 30 * 24 * HOUR_MS]) {
      const minute = Math.floor((world.nowMs + ahead) / MINUTE_MS);
      await world.ask(eventCause(minute, false), minute * MINUTE_MS);
    }
    expect(world.runs).to.deep.equal([]);
  });

  it("gains nothing by making the keyholder forget: what is as old does not begin any more", () => {
    const once = new Once(3);
    for (const atMs of [10, 30, 20, 40]) expect(once.begin(`cause ${atMs}`, atMs)).to.equal(true);
    expect(once.begin("cause 10", 10)).to.equal(false);
    expect(once.begin("another of that time", 10)).to.equal(false);
    expect(once.begin("later", 25)).to.equal(true);
    expect(once.begin("cause 30", 30)).to.equal(false);
    once.forget("later");
    expect(once.has("later", 25)).to.equal(true);
  });
});
