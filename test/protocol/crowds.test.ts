/**
 * Crowds at random against an account with short uses and against new ones, in simulated time: whatever they do with
 * their uses, these are refused nothing and wait for little. A failing crowd is shrunk and printed.
 */
import { expect } from "chai";
import fc from "fast-check";
import { once } from "node:events";
import { FairShare, inScope, Preempted } from "../../protocol/fairShare";
import { quantile } from "../../scripts/bench/statistics";
import { count, SEED } from "../support/counts";
import { SimulatedTime } from "../support/simulator/time";

/** What a member of the crowd does again and again. */
interface Habit {
  readonly uses: number;
  readonly activeMs: number;
  readonly restMs: number;
  readonly gapMs: number;
}

interface Crowd {
  readonly places: number;
  readonly accounts: number;
  /** Of each account at once. */
  readonly atOnce: number;
  readonly habits: readonly Habit[];
  /** How long the crowd is there before the other account comes. */
  readonly headStartMs: number;
}

const PATIENCE_MS = 1_000;
const REVOKE_EVERY_MS = 90;
/** For that long the other account uses a place again and again. */
const WATCHED_MS = 30_000;
const USE_MS = 15;
const GAP_MS = 50;
const MANY_USES = 40;
const NEW_EVERY_MS = 700;
const OVER = new Error("over");

const habit = fc.record({
  uses: fc.constantFrom(1, 3, 10, 35),
  activeMs: fc.constantFrom(1, 20, 400, 499, 700, 5_000, 60_000),
  restMs: fc.constantFrom(0, 0, 450, 58_000),
  gapMs: fc.constantFrom(0, 0, 50, 1_000, 12_000),
});
const crowds: fc.Arbitrary<Crowd> = fc.record({
  places: fc.constantFrom(4, 8, 8, 16),
  accounts: fc.constantFrom(2, 9, 64, 64),
  atOnce: fc.constantFrom(1, 1, 3),
  habits: fc.array(habit, { minLength: 1, maxLength: 4 }),
  headStartMs: fc.constantFrom(0, 0, 5_000, 70_000),
});

interface Waits {
  readonly known: number[];
  readonly news: number[];
}

describe("a crowd", () => {
  it("keeps nobody with many short uses waiting, and nobody new for long, whatever it does", async () => {
    await fc.assert(
      fc.asyncProperty(crowds, async (crowd) => {
        const { known, news } = await waitsBeside(crowd);
        expect(quantile(known, 0.5), "the median wait in ms").to.be.at.most(150);
        expect(quantile(known, 0.95), "all but the longest waits").to.be.at.most(PATIENCE_MS);
        expect(quantile(news, 0.5), "the median wait of new accounts").to.be.at.most(1.5 * PATIENCE_MS);
      }),
      { seed: SEED, numRuns: count(20, 200) },
    );
  }).timeout(count(120_000, 3_600_000));
});

describe("accounts that were here a while ago", () => {
  it("do not have another's short uses count as many", async () => {
    const time = new SimulatedTime();
    await time.during(async () => {
      const share = new FairShare({ total: 8, patienceMs: PATIENCE_MS, revokeEveryMs: REVOKE_EVERY_MS });
      const use = (account: string, ms: number): Promise<number> =>
        inScope(account, undefined, async (scope) => {
          const askedAt = time.now;
          await scope.take(share);
          const waited = time.now - askedAt;
          await Promise.race([time.sleep(ms), once(scope.over, "abort")]);
          return waited;
        });
      const waits: number[] = [];
      const watched = async (): Promise<void> => {
        for (let n = 0; n < 1_000; n++) await use(`passing${n}`, 1);
        for (let n = 0; n < 10; n++) await use("other", USE_MS);
        await time.sleep(15_000);
        const longOnes = Array.from({ length: 30 }, (_, n) => use(`long${n % 10}`, 20_000).catch(() => undefined));
        for (let n = 0; n < 15; n++) waits.push(await use("other", 200));
        await Promise.all(longOnes);
      };
      let isDone = false;
      const done = watched().finally(() => (isDone = true));
      await time.pass(600_000, () => isDone);
      await done;
      expect(Math.max(...waits), waits.join()).to.be.at.most(250);
    });
  }).timeout(60_000);
});

/** How long the other account and new ones waited for each of their uses, in ms. */
async function waitsBeside({ places, accounts, atOnce, habits, headStartMs }: Crowd): Promise<Waits> {
  const time = new SimulatedTime();
  return time.during(async () => {
    const share = new FairShare({
      total: places,
      mostWaiting: places * 16,
      patienceMs: PATIENCE_MS,
      revokeEveryMs: REVOKE_EVERY_MS,
    });
    const over = new AbortController();
    const use = (account: string, activeMs: number, restMs: number): Promise<number> =>
      inScope(account, over.signal, async (scope) => {
        const askedAt = time.now;
        const grant = await scope.take(share);
        const waited = time.now - askedAt;
        const ended = new Promise((resolve) => scope.over.addEventListener("abort", resolve, { once: true }));
        const during = (ms: number): Promise<unknown> => Promise.race([time.sleep(ms), ended]);
        await during(activeMs / 2);
        grant.rest();
        await during(restMs);
        grant.wake();
        await during(activeMs / 2);
        if (scope.over.aborted && scope.over.reason instanceof Preempted) throw scope.over.reason;
        return waited;
      });
    const member = async (account: string): Promise<void> => {
      while (!over.signal.aborted)
        for (const { uses, activeMs, restMs, gapMs } of habits)
          for (let n = 0; n < uses && !over.signal.aborted; n++) {
            await use(account, activeMs, restMs).catch(() => time.sleep(50));
            if (gapMs > 0) await time.sleep(gapMs);
          }
    };
    const waits: Waits = { known: [], news: [] };
    const newcomers = async (): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n++) {
        const askedAt = time.now;
        const waited = await use(`new${n}`, USE_MS, 0).catch((error: unknown) => {
          if (error !== OVER) throw error;
          return time.now - askedAt;
        });
        waits.news.push(waited);
        await time.sleep(NEW_EVERY_MS);
      }
    };
    const other = async (): Promise<void> => {
      for (let n = 0; n < MANY_USES; n++) await use("other", USE_MS, 0);
      for (let i = 0; i < accounts * atOnce; i++) void member(`crowd${i % accounts}`);
      for (const end = time.now + headStartMs; time.now < end;)
        await use("other", USE_MS, 0).then(() => time.sleep(500));
      const arriving = newcomers();
      for (const end = time.now + WATCHED_MS; time.now < end;) {
        waits.known.push(await use("other", USE_MS, 0));
        await time.sleep(GAP_MS);
      }
      over.abort(OVER);
      await arriving;
    };
    const watched = other().finally(() => over.abort(OVER));
    let isDone = false;
    watched.then(
      () => (isDone = true),
      () => (isDone = true),
    );
    await time.pass(600_000, () => isDone);
    await watched;
    await time.pass(1_000);
    return waits;
  });
}
