import { expect } from "chai";
import fc from "fast-check";
import { Crowded, FairShare, inScope, Preempted, type Scope } from "../../protocol/fairShare";
import { count, SEED } from "../support/counts";
import { expectInTime, itInTime } from "../support/inTime";
import { SimulatedTime } from "../support/simulator/time";

const settled = (): Promise<unknown> => new Promise(setImmediate);
const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** A scope that stays open until it is told to end. */
class Visit {
  readonly stop = new AbortController();
  readonly end = Promise.withResolvers<undefined>();
  /** When the first amount is held. */
  readonly granted = Promise.withResolvers<undefined>();
  /** When it has ended in any way. */
  readonly over: Promise<void>;
  /** Granted and not left. */
  held = 0;
  isResting = false;
  hasLent = false;
  outcome = "open";
  keep: (yields?: "yields") => void = () => undefined;
  use: () => void = () => undefined;
  rest: () => void = () => undefined;
  wake: () => void = () => undefined;
  lend: () => void = () => undefined;

  constructor(
    readonly account: string,
    share: FairShare,
    amounts: readonly number[],
  ) {
    const work = async (scope: Scope): Promise<void> => {
      for (const amount of amounts) {
        const { rest, wake, keep, use, lend } = await scope.take(share, amount);
        [this.keep, this.use] = [keep, use];
        this.held += amount;
        this.granted.resolve(undefined);
        this.lend = () => void ((this.hasLent = true), lend(() => (this.held -= amount)));
        this.rest = () => void ((this.isResting = true), rest());
        this.wake = () => void ((this.isResting = false), wake());
      }
      const over = new Promise((_, reject) =>
        scope.over.addEventListener("abort", () => reject(scope.over.reason as Error)),
      );
      await Promise.race([this.end.promise, over]);
    };
    this.over = inScope(account, this.stop.signal, work)
      .then(
        () => "done",
        (error: Error) => error.name,
      )
      .then((outcome) => void ((this.outcome = outcome), (this.held = 0)));
  }

  does(step: string): void {
    if (step === "rest") this.rest();
    if (step === "wake") this.wake();
    if (step === "keep") this.keep("yields");
    if (step === "use") this.use();
    if (step === "lend") this.lend();
    if (step.startsWith("end")) this.end.resolve(undefined);
    if (step.endsWith("give up")) this.stop.abort(new Error("gone"));
  }
}

async function untilGranted(share: FairShare, account: string, amount = 1): Promise<Visit> {
  const visit = new Visit(account, share, [amount]);
  await settled();
  expect(visit.held, `${account} is served at once`).to.equal(amount);
  return visit;
}

/** How many entries of maps and sets are looked at meanwhile. */
async function stepsOf(work: () => Promise<unknown>): Promise<number> {
  let steps = 0;
  const iterators = [new Map().values(), new Set().values()].map(
    (iterator) => Object.getPrototypeOf(iterator) as { next: () => unknown },
  );
  const restore = iterators.map((iterator) => {
    const { next } = iterator;
    iterator.next = function (this: unknown) {
      steps++;
      return next.call(this);
    };
    return () => void (iterator.next = next);
  });
  await work().finally(() => restore.forEach((one) => one()));
  return steps;
}

const LONGEST_MS = 600_000;

/** Takes simulated time: nothing else on the machine changes how long others wait. */
function itSimulated(title: string, test: () => Promise<unknown>): Mocha.Test {
  return it(title, () => {
    const time = new SimulatedTime();
    return time.during(async () => {
      let isOver = false;
      const testing = test().finally(() => (isOver = true));
      testing.catch(() => undefined);
      if (!(await time.pass(LONGEST_MS, () => isOver))) throw new Error(`it goes on for more than ${LONGEST_MS} ms`);
      await testing;
    });
  });
}

describe("a fair share", () => {
  itSimulated("leaks nothing and grants no more than there is, whoever asks, leaves or gives up", async () => {
    const step = fc.record({
      kind: fc.constantFrom(
        ...[
          "ask",
          "ask",
          "ask",
          "ask twice",
          "rest",
          "wake",
          "keep",
          "use",
          "lend",
          "give up",
          "end",
          "end",
          "end and give up",
        ],
      ),
      account: fc.constantFrom("a", "b", "c", "d"),
      amount: fc.integer({ min: 1, max: 12 }),
      which: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(step, { maxLength: 60 }),
        async (total, mostWaiting, steps) => {
          const share = new FairShare({ total, mostWaiting, patienceMs: 20 });
          const visits: Visit[] = [];
          for (const { kind, account, amount, which } of steps) {
            const open = visits.filter(({ outcome }) => outcome === "open");
            const one = open[which % Math.max(1, open.length)];
            if (kind === "ask") visits.push(new Visit(account, share, [Math.min(amount, total)]));
            else if (kind === "ask twice") visits.push(new Visit(account, share, [1, 1]));
            else one?.does(kind);
            if (which % 2 === 0) await settled();
            if (!steps.some((step) => step.kind === "wake" || step.kind === "keep"))
              expect(share.taken).to.be.within(0, total);
          }
          for (const { wake } of visits) wake();
          await settled();
          expect(share.taken).to.equal(visits.reduce((sum, { held }) => sum + held, 0));
          while (visits.some(({ outcome }) => outcome === "open")) {
            for (const { held, hasLent, end, stop } of visits.filter(({ outcome }) => outcome === "open"))
              // Those that wait for a second grant beside their first may wait for each other.
              if (held > 0 || hasLent) (end.resolve(undefined), setTimeout(() => stop.abort(new Error("gone")), 5));
            await pause(1);
          }
          expect([share.taken, share.waiting]).to.deep.equal([0, 0]);
          await untilGranted(share, "e", total);
          const beyond = ["a", "b", "c", "d", "f"].map((account) => new Visit(account, share, [1]));
          await settled();
          expect(share.taken).to.equal(total);
          for (const { stop } of beyond) stop.abort(new Error("gone"));
        },
      ),
      { seed: SEED, numRuns: count(100, 3_000) },
    );
  }).timeout(count(30_000, 600_000));

  itSimulated("serves whoever holds least first, and among equals whoever used least", async () => {
    const share = new FairShare({ total: 4 });
    const all = [await untilGranted(share, "greedy"), await untilGranted(share, "greedy")];
    all.push(await untilGranted(share, "other"), await untilGranted(share, "third"));
    // Beyond what is short: those whose uses are short come before all others.
    await pause(600);
    const order: string[] = [];
    const wait = (account: string): Promise<void> =>
      inScope(account, undefined, async (scope) => {
        await scope.take(share);
        order.push(account);
        await pause(5);
      });
    const waits = [wait("greedy"), wait("other"), wait("newcomer")];
    await pause(1);
    for (const { end } of all.slice(2)) end.resolve(undefined);
    await settled();
    expect(order[0]).to.equal("newcomer");
    for (const { end } of all) end.resolve(undefined);
    await Promise.all(waits);
    expect(order).to.deep.equal(["newcomer", "other", "greedy"]);
  });

  it("keeps room for one that is not there yet, however many hold something", async () => {
    for (const total of [2, 4, 8]) {
      const share = new FairShare({ total });
      for (let i = 0; i < 3 * total; i++) new Visit("flood", share, [1]);
      await untilGranted(share, "quiet");
    }
  });

  it("refuses no newcomer: whoever has most places in the queue loses one", async () => {
    const share = new FairShare({ total: 1, mostWaiting: 10 });
    const floods = ["a", "b"].flatMap((name) => Array.from({ length: 20 }, () => new Visit(name, share, [1])));
    await settled();
    expect(share.waiting).to.equal(10);
    const quiet = Array.from({ length: 12 }, (_, i) => new Visit(`quiet${i}`, share, [1]));
    await settled();
    expect(quiet.filter(({ outcome }) => outcome !== "open")).to.deep.equal([]);
    expect(floods.filter(({ outcome }) => outcome === "open")).to.have.lengthOf(1 + 2);
    const refused = await inScope("a", undefined, (scope) => scope.take(share)).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Crowded).with.property("retryAfterSeconds").that.is.within(1, 60);
  });

  itSimulated("ends a grant of whoever holds most when others have waited, and never a young one", async () => {
    const share = new FairShare({ total: 4, patienceMs: 60 });
    const visits = ["a", "a", "b", "c"].map((name) => new Visit(name, share, [1]));
    await settled();
    const startedAt = performance.now();
    const late = new Visit("d", share, [1]);
    while (late.held === 0) await pause(5);
    expect(performance.now() - startedAt).to.be.at.least(55);
    expect(visits.map(({ outcome }) => outcome)).to.have.members([Preempted.name, "open", "open", "open"]);
    expect([visits[0]?.outcome, visits[1]?.outcome]).to.include(Preempted.name);
  });

  itSimulated("ends no grant before it is in use, and then after others' full patience", async () => {
    const share = new FairShare({ total: 1, patienceMs: 100 });
    const first = await untilGranted(share, "a");
    first.keep();
    const late = new Visit("b", share, [1]);
    await pause(250);
    expect([first.outcome, late.outcome]).to.deep.equal(["open", "open"]);
    first.use();
    await pause(60);
    expect(first.outcome).to.equal("open");
    await pause(200);
    expect(first.outcome).to.equal(Preempted.name);
    late.end.resolve(undefined);
    await settled();
  });

  itSimulated("keeps giving turns to accounts that all use much", async () => {
    const share = new FairShare({ total: 8, patienceMs: 600 });
    let [turns, isOver] = [0, false];
    const greedy = Array.from({ length: 20 }, async (_, i) => {
      for (; !isOver; turns++) {
        const visit = new Visit(`greedy${i}`, share, [1]);
        while (visit.outcome === "open" && !isOver) await pause(5);
        visit.end.resolve(undefined);
      }
    });
    await pause(2_000);
    const before = turns;
    await pause(1_000);
    expect(turns - before).to.be.above(4);
    isOver = true;
    await Promise.all(greedy);
  }).timeout(10_000);

  itSimulated("lets nobody take from one that holds no more than it would", async () => {
    const share = new FairShare({ total: 4, patienceMs: 20 });
    const visits = ["a", "b", "b", "a"].map((name) => new Visit(name, share, [1]));
    await settled();
    const more = new Visit("a", share, [1]);
    await pause(150);
    expect([...visits, more].map(({ outcome }) => outcome)).to.not.include(Preempted.name);
  });

  itSimulated("gives 64 accounts that hold all of it no way to keep another waiting", async () => {
    expect((await waitsBeside64(new FairShare({ total: 8, patienceMs: 40 }), 5))[15]).to.be.below(150);
  });

  itSimulated("does not take the time before a use for use, nor that for which it was lent, or rested", async () => {
    const share = new FairShare({ total: 10 });
    for (const account of ["long", "prepared", "lent", "rested"]) {
      const first = await untilGranted(share, account);
      if (account === "lent") first.lend();
      if (account === "rested") first.rest();
      await pause(700);
      if (account === "prepared") first.use();
      first.end.resolve(undefined);
      await settled();
    }
    const others = await Promise.all(Array.from({ length: 8 }, (_, i) => untilGranted(share, `other${i}`)));
    const long = new Visit("long", share, [1]);
    const short = [await untilGranted(share, "prepared"), await untilGranted(share, "lent")];
    short[0]?.end.resolve(undefined);
    await settled();
    short.push(await untilGranted(share, "rested"));
    expect(long.held).to.equal(0);
    for (const { end } of [...others, ...short, long]) end.resolve(undefined);
    await settled();
  });

  itSimulated("serves short uses at once although 64 accounts hold what they get for as long as they may", async () => {
    const share = new FairShare({ total: 8, patienceMs: 700, revokeEveryMs: 90 });
    expect((await waitsBeside64(share, 30))[15]).to.be.below(10);
  }).timeout(20_000);

  itSimulated("serves short uses at once that follow each other, although 64 accounts hold what they get", async () => {
    const share = new FairShare({ total: 8, patienceMs: 700, revokeEveryMs: 90 });
    expect((await waitsBeside64(share, 5, { visits: 100, heldMs: 15 }))[50]).to.be.below(10);
  }).timeout(60_000);

  itSimulated("does not hold against an account what it used while nobody waited", async () => {
    const share = new FairShare({ total: 8, patienceMs: 700, revokeEveryMs: 90 });
    const lately = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) {
        const visit = await untilGranted(share, "quiet");
        await pause(20);
        visit.end.resolve(undefined);
        await settled();
      }
    };
    await Promise.all([lately(), lately(), lately()]);
    expect((await waitsBeside64(share, 30)).at(-1)).to.be.below(700);
  }).timeout(60_000);

  itSimulated(
    "serves short uses soon although 64 accounts hold long what they got because theirs had been short",
    async () => {
      const share = new FairShare({ total: 8, patienceMs: 1_500, revokeEveryMs: 90 });
      expect((await waitsBeside64(share, 30, { shortBefore: 5 }))[15]).to.be.below(150);
    },
  ).timeout(60_000);

  itSimulated("serves at once whose many uses were short, although 64 hold long whose few were", async () => {
    const share = new FairShare({ total: 8, patienceMs: 1_500, revokeEveryMs: 90 });
    const waits = await waitsBeside64(share, 5, { shortBefore: 5, quietBefore: 40, visits: 100, heldMs: 15 });
    expect(waits.at(-1)).to.be.below(300);
  }).timeout(60_000);

  itSimulated("still takes the uses of an account for short when one of them is long", async () => {
    const share = new FairShare({ total: 8 });
    for (const ms of [0, 0, 0, 0, 2_000]) {
      const use = await untilGranted(share, "quiet");
      await pause(ms);
      use.end.resolve(undefined);
      await settled();
    }
    const others = await Promise.all(Array.from({ length: 6 }, (_, i) => untilGranted(share, `other${i}`)));
    const quiet = await untilGranted(share, "quiet");
    for (const { end } of [...others, quiet]) end.resolve(undefined);
  });

  it("takes the uses of an account for short also when a long one of many had to be ended for another's", async () => {
    const share = new FairShare({ total: 8, patienceMs: 60_000 });
    const use = async (account: string, ms: number): Promise<void> => {
      const visit = await untilGranted(share, account);
      if (ms > 0) await pause(ms);
      visit.end.resolve(undefined);
      await settled();
    };
    const greedy = Array.from({ length: 6 }, (_, i) => `greedy${i}`);
    await Promise.all(greedy.map((account) => use(account, 600)));
    for (const account of ["other", "third"]) for (let i = 0; i < 40; i++) await use(account, 0);
    const open = await Promise.all(greedy.map((account) => untilGranted(share, account)));
    const longAfterShort = async (account: string, shortUses: number): Promise<Visit> => {
      for (let i = 0; i < shortUses; i++) await use(account, 0);
      const visits = await Promise.all([account, "other"].map((name) => untilGranted(share, name)));
      await pause(600);
      const third = new Visit("third", share, [1]);
      while (third.held === 0) await pause(1);
      expect(visits[0]?.outcome).to.equal(Preempted.name);
      for (const { end } of [...visits, third]) end.resolve(undefined);
      await settled();
      const again = new Visit(account, share, [1]);
      await settled();
      return again;
    };
    open.push(await longAfterShort("seldom", 2), await longAfterShort("quiet", 40));
    expect(open.slice(-2).map(({ held }) => held)).to.deep.equal([0, 1]);
    for (const { end, stop } of open) (end.resolve(undefined), stop.abort(new Error("gone")));
  });

  itInTime("lets thousands of accounts give up together in no time", async () => {
    const share = new FairShare({ total: 40, patienceMs: 60_000 });
    const holder = await untilGranted(share, "holder", 20);
    const waiting = Array.from({ length: 3_000 }, (_, i) => new Visit(`a${i}`, share, [30]));
    await settled();
    expect(share.waiting).to.equal(3_000);
    // Of this thread: others on the machine do not count.
    const before = process.threadCpuUsage();
    for (const { stop } of waiting) stop.abort(new Error("gone"));
    await settled();
    const { user, system } = process.threadCpuUsage(before);
    const took = (user + system) / 1_000;
    expect(share.waiting).to.equal(0);
    holder.end.resolve(undefined);
    expectInTime(took, 150);
  }).timeout(60_000);

  it("looks at none of thousands of accounts that come and go for others' uses and waits", async () => {
    const share = new FairShare({ total: 64, mostWaiting: 8, patienceMs: 20 });
    const comeAndGo = async (account: string): Promise<void> => {
      (await untilGranted(share, account)).end.resolve(undefined);
      await settled();
    };
    for (let i = 0; i < 1_000; i++) await comeAndGo(`passing${i}`);
    const open = [await untilGranted(share, "holder")];
    const steps = {
      ofAnother: await stepsOf(() => comeAndGo("another")),
      ofOneThatHolds: await stepsOf(() => comeAndGo("holder")),
      ofOneThatWaits: await stepsOf(async () => {
        for (const amount of [20, 20, 64, 64]) open.push(new Visit(`waiting${amount}`, share, [amount]));
        for (let i = 0; i < 9; i++) open.push(new Visit("many", share, [30]));
        await pause(60);
      }),
    };
    for (const { end, stop } of open) (end.resolve(undefined), stop.abort(new Error("gone")));
    expect(steps.ofAnother).to.be.below(20);
    expect(steps.ofOneThatHolds).to.be.below(20);
    expect(steps.ofOneThatWaits).to.be.below(3_000);
  }).timeout(20_000);

  it("knows when an account's next use waits for its own, also where uses are a large part of the whole", async () => {
    const MIB = 2 ** 20;
    const amount = 10 * MIB;
    const share = new FairShare({ total: 128 * MIB, unit: amount });
    const open: Visit[] = [];
    const isOwnDoing = (account: string): boolean => share.hasItsPart(account, amount);
    for (;;) {
      const before = isOwnDoing("a");
      const visit = new Visit("a", share, [amount]);
      open.push(visit);
      await settled();
      expect(before, `before use ${open.length}`).to.equal(visit.held === 0);
      if (before) break;
    }
    expect(open).to.have.lengthOf(10);
    expect(isOwnDoing("b"), "nothing is its own yet").to.equal(false);
    open.push(await untilGranted(share, "b", amount), new Visit("b", share, [2 * amount]));
    await settled();
    expect(isOwnDoing("b"), "it waits for what another holds").to.equal(false);
    for (const { end, stop } of open) (end.resolve(undefined), stop.abort(new Error("gone")));
  });

  it("serves equals in the order in which they were served last, whenever they asked", async () => {
    const share = new FairShare({ total: 1, unit: 0 });
    const order: string[] = [];
    const use = (account: string): Promise<void> =>
      inScope(account, undefined, async (scope) => {
        await scope.take(share);
        order.push(account);
      });
    for (const account of ["a", "b", "c"]) await use(account);
    const holder = await untilGranted(share, "holder");
    const waits = ["c", "b", "d", "a"].map(use);
    holder.end.resolve(undefined);
    await Promise.all(waits);
    expect(order.slice(3)).to.deep.equal(["a", "b", "c", "d"]);
  });

  it("serves short uses of little at once although the next one wants more than there is", async () => {
    const share = new FairShare({ total: 40, patienceMs: 60_000 });
    for (const account of ["d", ...Array<string>(40).fill("quiet")]) {
      (await untilGranted(share, account)).end.resolve(undefined);
      await settled();
    }
    const open = await Promise.all(["a", "b", "c"].map((account) => untilGranted(share, account, 10)));
    open.push(new Visit("d", share, [11]), await untilGranted(share, "quiet"));
    for (const { end } of open) end.resolve(undefined);
  });

  it("serves short uses at once although others woke into what is kept for them", async () => {
    const share = new FairShare({ total: 8 });
    (await untilGranted(share, "quiet")).end.resolve(undefined);
    await settled();
    const visits: Visit[] = [];
    for (let i = 0; i < 12; i++) {
      const visit = await untilGranted(share, `greedy${i}`);
      visit.rest();
      visits.push(visit);
    }
    for (const { wake } of visits) wake();
    expect(share.taken).to.equal(12);
    visits.push(await untilGranted(share, "quiet"));
    const newcomer = new Visit("greedy", share, [1]);
    await settled();
    expect(newcomer.held).to.equal(0);
    for (const { end } of [...visits, newcomer]) end.resolve(undefined);
    await settled();
    expect(share.taken).to.equal(0);
  });

  it("takes back what is lent as soon as somebody waits for it, the oldest first and no more", async () => {
    const share = new FairShare({ total: 6, unit: 0 });
    const [first, second, third] = [
      await untilGranted(share, "a", 2),
      await untilGranted(share, "b", 2),
      await untilGranted(share, "c", 2),
    ];
    first.lend();
    second.lend();
    const newcomer = await untilGranted(share, "d", 1);
    expect([first.held, second.held, third.held, share.taken]).to.deep.equal([0, 2, 2, 5]);
    const more = new Visit("e", share, [5]);
    await settled();
    expect([second.held, more.held, share.taken]).to.deep.equal([0, 0, 3]);
    third.lend();
    await settled();
    expect([third.held, more.held, share.taken]).to.deep.equal([0, 5, 6]);
    expect([first, second, third].map(({ outcome }) => outcome)).to.deep.equal(["open", "open", "open"]);
    for (const { end } of [first, second, third, newcomer, more]) end.resolve(undefined);
    await settled();
    expect(share.taken).to.equal(0);
  });

  it("does not count a grant that rests", async () => {
    const share = new FairShare({ total: 2 });
    const sleeping = await untilGranted(share, "a");
    sleeping.rest();
    const [one, two] = [await untilGranted(share, "b"), await untilGranted(share, "c")];
    sleeping.wake();
    expect(share.taken).to.equal(3);
    const waiting = new Visit("d", share, [1]);
    one.end.resolve(undefined);
    await settled();
    expect(waiting.held).to.equal(0);
    for (const { end } of [sleeping, two]) end.resolve(undefined);
    await settled();
    expect(waiting.held).to.equal(1);
    waiting.end.resolve(undefined);
    await settled();
    expect(share.taken).to.equal(0);
  });
});

/** The waits of another account in ms, sorted, while 64 accounts hold what they get until it is taken from them. */
async function waitsBeside64(
  share: FairShare,
  betweenMs: number,
  { shortBefore = 0, quietBefore = 0, visits = 30, heldMs = 0 } = {},
): Promise<readonly number[]> {
  const over = Promise.withResolvers<undefined>();
  let isOver = false;
  const useShortly = async (account: string): Promise<void> => {
    const visit = new Visit(account, share, [1]);
    await visit.granted.promise;
    await pause(1);
    visit.end.resolve(undefined);
    await settled();
  };
  for (let i = 0; i < shortBefore + quietBefore; i++) await useShortly("quiet");
  for (let i = 0; i < 64; i++) for (let n = 0; n < shortBefore; n++) await useShortly(`greedy${i}`);
  const greedy = Array.from({ length: 64 }, async (_, i) => {
    while (!isOver) {
      const visit = new Visit(`greedy${i}`, share, [1]);
      await Promise.race([visit.over, over.promise]);
      visit.end.resolve(undefined);
    }
  });
  const waits: number[] = [];
  for (let i = 0; i < visits; i++) {
    const startedAt = performance.now();
    const visit = new Visit("quiet", share, [1]);
    await visit.granted.promise;
    waits.push(performance.now() - startedAt);
    if (heldMs > 0) await pause(heldMs);
    visit.end.resolve(undefined);
    await pause(betweenMs);
  }
  isOver = true;
  over.resolve(undefined);
  await Promise.all(greedy);
  return waits.sort((a, b) => a - b);
}
