/**
 * Budgets through random histories: several keyholders, kills, reorganizations, lost answers, edges of windows, wrong
 * clocks, endpoints that are behind, a relayer that repeats, withholds and lies, a stolen payer. What was signed is
 * never more than the limit; what a crash wastes is bounded.
 */
import { expect } from "chai";
import fc from "fast-check";
import type { Hash32 } from "../../../protocol/ids";
import { leaseDepthOf } from "../../../executor/budgets/depth";
import { OpRefusal } from "../../../executor/ops/refusal";
import { BudgetWorld, SimulatedKeyholder, type Fate } from "../../support/budgetWorld";
import { SEED, count } from "../../support/counts";

const KEYHOLDERS = 3;
const CONFIRMATIONS = 3;
const LIMITS = [40n, 100n, 1_000n] as const;
const BLOCK_SECONDS = 12;

type Step =
  | {
      readonly kind: "spend";
      readonly by: number;
      readonly amount: bigint;
      readonly limit: bigint;
      readonly gone: boolean;
    }
  | { readonly kind: "mine"; readonly seconds: number; readonly blocks: number }
  | { readonly kind: "reorganize"; readonly depth: number }
  | { readonly kind: "kill"; readonly by: number }
  | { readonly kind: "behind"; readonly by: number; readonly blocks: number }
  | { readonly kind: "fates"; readonly fates: Fate[] }
  | { readonly kind: "release" }
  | { readonly kind: "steal"; readonly amount: bigint; readonly limit: bigint }
  | { readonly kind: "pass"; readonly ms: number };

const by = fc.nat({ max: KEYHOLDERS - 1 });
const fate = fc.constantFrom<Fate>(
  "sent",
  "twice",
  "late",
  "dropped",
  "sent, said to fail",
  "no credit",
  "dropped, said to be sent",
);
const spend = fc.record({
  kind: fc.constant("spend" as const),
  by,
  amount: fc.bigInt({ min: 0n, max: 60n }),
  limit: fc.constantFrom(...LIMITS),
  gone: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: spend },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("mine" as const),
      // Some blocks end a window, to the second or far beyond it.
      seconds: fc.constantFrom(BLOCK_SECONDS, BLOCK_SECONDS, BLOCK_SECONDS, 1, 1_800, 3_600, 7_300),
      blocks: fc.constantFrom(1, 1, CONFIRMATIONS, CONFIRMATIONS + 1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.constantFrom(50, 1_100, 12_000, 70_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("reorganize" as const), depth: fc.nat({ max: CONFIRMATIONS - 1 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), by }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("behind" as const), by, blocks: fc.nat({ max: 2 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("fates" as const), fates: fc.array(fate, { maxLength: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("steal" as const),
      amount: fc.bigInt({ min: 0n, max: 60n }),
      limit: fc.constantFrom(10n, 5_000n),
    }),
  },
);

class History {
  readonly world = new BudgetWorld(CONFIRMATIONS);
  // Clocks that run slow and fast.
  readonly keyholders = [1, 0.5, 2].map((rate) => new SimulatedKeyholder(this.world, rate));
  #underWay = 0;

  async take(one: Step): Promise<void> {
    const { world, keyholders } = this;
    if (one.kind === "spend") this.#spend(one);
    if (one.kind === "mine") await this.#mine(one);
    if (one.kind === "reorganize") world.reorganize(one.depth);
    if (one.kind === "kill") keyholders[one.by]?.kill();
    if (one.kind === "behind") Object.assign(keyholders[one.by] ?? {}, { behind: one.blocks });
    if (one.kind === "fates") world.fates.push(...one.fates);
    if (one.kind === "release") world.release();
    if (one.kind === "steal")
      world.steal({ amount: one.amount, limit: one.limit, id: `0x${"5e".repeat(32)}` as Hash32 });
    await world.time.pass(one.kind === "pass" ? one.ms : 1);
  }

  async #mine({ seconds, blocks }: Extract<Step, { kind: "mine" }>): Promise<void> {
    for (let block = 0; block < blocks; block++) {
      this.world.mine(block === 0 ? seconds : 1);
      await this.world.time.pass(1_100);
    }
  }

  #spend({ by: who, amount, limit, gone }: Extract<Step, { kind: "spend" }>): void {
    this.#underWay += 1;
    // Some runs end while they wait.
    const over = new AbortController();
    if (gone) void this.world.time.sleep(2_000).then(() => over.abort());
    const done = (): void => void (this.#underWay -= 1);
    void this.keyholders[who]?.spend(amount, limit, over.signal).then(done, done);
  }

  /** The faults end, and the chain goes on. */
  async quiet(): Promise<void> {
    this.world.fates = [];
    for (const keyholder of this.keyholders) keyholder.behind = 0;
    for (let blocks = 0; blocks < 2_000 && this.#underWay > 0; blocks++) {
      this.world.mine(BLOCK_SECONDS);
      await this.world.time.pass(BLOCK_SECONDS * 1_000, () => this.#underWay === 0);
    }
    expect(this.#underWay, "spends that never end").to.equal(0);
  }

  requireBounds(): void {
    const { spent, windows } = this.world;
    for (const index of windows) {
      const within = spent.filter((one) => one.index === index);
      for (const most of LIMITS) {
        const sum = within.filter(({ limit }) => limit <= most).reduce((all, { amount }) => all + amount, 0n);
        expect(sum <= most, `${sum} of ${most} in window ${index}`).to.equal(true);
      }
      const sum = within.reduce((all, { amount }) => all + amount, 0n);
      expect(sum <= this.world.used(index), `${sum} signed, ${this.world.used(index)} leased`).to.equal(true);
    }
  }
}

describe("budgets in random histories", () => {
  it("never sign more than the limit in a window, whatever happens between keyholders, relayer and chain", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
        const history = new History();
        for (const one of steps) await history.take(one);
        await history.quiet();
        history.requireBounds();
        for (const error of history.world.refused) if (!(error instanceof OpRefusal)) throw error;
      }),
      { numRuns: count(150, 5_000), seed: SEED },
    );
  }).timeout(120_000);

  it("waste at most a slice and what was asked for with each crash, and nothing without one", async () => {
    const LIMIT = 1_000n;
    const spends = fc.array(
      fc.record({ by, amount: fc.bigInt({ min: 1n, max: 50n }), kills: fc.integer({ min: 0, max: 9 }) }),
      { minLength: 1, maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(spends, async (all) => {
        const history = new History();
        let kills = 0;
        for (const { by: who, amount, kills: dice } of all) {
          const keyholder = history.keyholders[who];
          if (dice === 0) keyholder?.kill();
          if (dice === 0) kills += 1;
          await history.take({ kind: "spend", by: who, amount, limit: LIMIT, gone: false });
          await history.quiet();
        }
        const { spent, windows } = history.world;
        for (const index of windows) {
          const signed = spent.filter((one) => one.index === index).reduce((sum, { amount }) => sum + amount, 0n);
          const unused = history.world.used(index) - signed;
          // Each keyholder holds less than a slice, and each crash has lost as much.
          expect(unused <= BigInt(KEYHOLDERS + kills) * (LIMIT / 8n + 50n), `${unused} wasted`).to.equal(true);
        }
      }),
      { numRuns: count(20, 500), seed: SEED },
    );
  }).timeout(120_000);
});

describe("one budget", () => {
  const quietly = async (work: (history: History) => Promise<void>): Promise<void> => work(new History());
  const settled = async <T>(history: History, promise: Promise<T>): Promise<T> => {
    let isDone = false;
    const done = promise.finally(() => (isDone = true));
    for (let blocks = 0; blocks < 100 && !isDone; blocks++) {
      history.world.mine(BLOCK_SECONDS);
      await history.world.time.pass(BLOCK_SECONDS * 1_000, () => isDone);
    }
    return done;
  };

  it("serves an eighth of the limit from one lease, and says what is left", async () => {
    await quietly(async (history) => {
      const [keyholder] = history.keyholders;
      for (let spends = 1n; spends <= 12n; spends++)
        expect(await settled(history, keyholder?.spend(10n, 1_000n) ?? Promise.reject(new Error()))).to.equal(
          1_000n - 10n * spends,
        );
      expect(history.world.used(history.world.now / 3_600n)).to.equal(125n);
    });
  });

  it("is exact for spends at once on several keyholders: all of the limit, and not a unit more", async () => {
    await quietly(async (history) => {
      const all = Promise.all(
        history.keyholders.flatMap((keyholder) => Array.from({ length: 30 }, () => keyholder.spend(25n, 1_000n))),
      );
      await settled(history, all);
      const signed = history.world.spent.reduce((sum, { amount }) => sum + amount, 0n);
      expect(signed <= 1_000n && signed >= 900n, `${signed}`).to.equal(true);
    });
  });

  it("waits for a lease for as long as the blocks above it take, and leases no other one meanwhile", async () => {
    const { confirmations, patienceMs } = leaseDepthOf(1n, 30);
    const world = new BudgetWorld(confirmations);
    const keyholder = new SimulatedKeyholder(world, 1, patienceMs);
    const spends = [keyholder.spend(10n, 1_000n), keyholder.spend(10n, 1_000n)];
    let isDone = false;
    void Promise.all(spends).then(() => (isDone = true));
    // The lease of the first is in the tenth block: sending takes a while, too.
    for (let block = 0; block < confirmations + 20 && !isDone; block++) {
      if (block >= 10) world.mine(BLOCK_SECONDS);
      await world.time.pass(BLOCK_SECONDS * 1_000, () => isDone);
    }
    expect(world.refused).to.deep.equal([]);
    expect(await Promise.all(spends)).to.deep.equal([990n, 980n]);
    expect(world.used(world.now / 3_600n)).to.equal(125n);
  });

  it("starts each window with nothing, and leaves what a slice had left behind", async () => {
    await quietly(async (history) => {
      const [keyholder] = history.keyholders as [SimulatedKeyholder];
      await settled(history, keyholder.spend(10n, 1_000n));
      for (let block = 0; block < 20; block++) history.world.mine(1);
      await settled(history, keyholder.spend(1n, 1_000n));
      history.world.mine(3_600);
      await history.world.time.pass(2_000);
      expect(await settled(history, keyholder.spend(10n, 1_000n))).to.equal(990n);
      const index = history.world.now / 3_600n;
      expect([history.world.used(index - 1n), history.world.used(index)]).to.deep.equal([125n, 125n]);
    });
  });

  it("does not return to a window that is over, when an endpoint is behind", async () => {
    await quietly(async (history) => {
      const [keyholder] = history.keyholders as [SimulatedKeyholder];
      await settled(history, keyholder.spend(10n, 1_000n));
      history.world.mine(3_600);
      await history.world.time.pass(2_000);
      await settled(history, keyholder.spend(0n, 1_000n));
      keyholder.behind = history.world.head;
      void keyholder.spend(10n, 1_000n);
      await history.world.time.pass(30_000);
      keyholder.behind = 0;
      await history.quiet();
      history.requireBounds();
      expect(history.world.used(history.world.now / 3_600n - 1n)).to.equal(125n);
    });
  });

  it("has two limits for one name: each call is held to its own, lower units first", async () => {
    await quietly(async (history) => {
      const [one, other] = history.keyholders as [SimulatedKeyholder, SimulatedKeyholder];
      expect(await settled(history, one.spend(40n, 40n))).to.equal(0n);
      expect(await settled(history, one.spend(1n, 40n))).to.equal(undefined);
      expect(await settled(history, other.spend(60n, 100n))).to.equal(0n);
      expect(await settled(history, other.spend(1n, 100n))).to.equal(undefined);
      expect(await settled(history, one.spend(1n, 1_000n))).to.equal(899n);
      expect(await settled(history, one.spend(0n, 40n))).to.equal(0n);
    });
  });

  it("waits while a reorganization has dropped its lease, and goes on once it is back", async () => {
    await quietly(async (history) => {
      const [keyholder] = history.keyholders as [SimulatedKeyholder];
      await settled(history, keyholder.spend(10n, 1_000n));
      history.world.reorganize(20);
      await history.world.time.pass(2_000);
      let isDone = false;
      const second = keyholder.spend(10n, 1_000n).finally(() => (isDone = true));
      await history.world.time.pass(5_000);
      expect(isDone).to.equal(false);
      expect(await settled(history, second)).to.equal(980n);
      expect(history.world.used(history.world.now / 3_600n)).to.equal(125n);
    });
  });

  it("signs nothing without credit, and tries again with the next spend", async () => {
    await quietly(async (history) => {
      const [keyholder] = history.keyholders as [SimulatedKeyholder];
      history.world.fates = ["no credit"];
      expect(await settled(history, keyholder.spend(10n, 1_000n))).to.equal(undefined);
      expect((history.world.refused[0] as OpRefusal).code).to.equal("budget_unavailable");
      expect((history.world.refused[0] as OpRefusal).message).to.match(/0 cents.*timeout_ms/);
      expect(history.world.used(history.world.now / 3_600n)).to.equal(0n);
      expect(await settled(history, keyholder.spend(10n, 1_000n))).to.equal(990n);
    });
  });
});
