/** The budget of new accounts and keys under crowds of addresses, in simulated time and in the store. */
import { expect } from "chai";
import fc from "fast-check";
import { KeywrightError } from "../../../protocol/errors";
import { RATE_LIMITS } from "../../../protocol/limits";
import { MintBudget } from "../../../relayer/middleware/mintBudget";
import { hashedNetworks } from "../../../relayer/middleware/rateLimits";
import { memoryCounts, storeCounts } from "../../../relayer/store/mintCounts";
import { count, SEED } from "../../support/counts";
import { openTestStore } from "../../support/testStore";

const PER_DAY = RATE_LIMITS.production.mintsPerDay;
const SECOND = 1_000;
const HOUR = 60 * 60 * SECOND;
const DAY = 24 * HOUR;

const addressesOf = (total: number, address: (i: number) => string): string[] =>
  Array.from({ length: total }, (_, i) => address(i));

/** Each in a /16 of its own. */
const scattered = (total: number): string[] =>
  addressesOf(total, (i) => `${11 + Math.floor(i / 250)}.${i % 250}.${(i * 7) % 256}.${(i * 13) % 256}`);

class Service {
  nowMs = 0;
  /** When something was granted. */
  readonly granted: number[] = [];
  readonly #budget: MintBudget;
  readonly #networks = new Map<string, string[]>();

  constructor(perDay: number = PER_DAY) {
    this.#budget = new MintBudget(
      perDay,
      memoryCounts(() => this.nowMs),
    );
  }

  /** Undefined if it was granted, else the seconds to wait. */
  async ask(address: string): Promise<number | undefined> {
    try {
      const networks = this.#networks.get(address) ?? hashedNetworks("key", address);
      this.#networks.set(address, networks);
      await this.#budget.take(networks);
      this.granted.push(this.nowMs);
      return undefined;
    } catch (error) {
      if (!(error instanceof KeywrightError) || error.retryAfterSeconds === undefined) throw error;
      return error.retryAfterSeconds;
    }
  }

  /** All ask in turn until nobody gets anything; how many got something. */
  async exhaust(crowd: readonly string[]): Promise<number> {
    let total = 0;
    for (;;) {
      const before = this.granted.length;
      for (const address of crowd) await this.ask(address);
      if (this.granted.length === before) return total;
      total += this.granted.length - before;
    }
  }

  get mostInADay(): number {
    let [most, first] = [0, 0];
    this.granted.forEach((at, last) => {
      while (at - (this.granted[first] ?? 0) >= DAY) first++;
      most = Math.max(most, last - first + 1);
    });
    return most;
  }
}

/** Of networks that have had nothing before. */
const newcomersOf = (day: number): string[] => [`2a00:145${day}::200e`, `198.5${day}.100.7`, `2620:f${day}::f`];

describe("the budget of new accounts", () => {
  it("gives one address several at once in quiet times, also where it is small", async () => {
    expect(await new Service().exhaust(["203.0.113.7"])).to.equal(16);
    expect(await new Service(10).exhaust(["203.0.113.7"])).to.equal(4);
    expect(await new Service(1).exhaust(["203.0.113.7"])).to.equal(1);
  });

  it("gives all of one wide network more than an address, and leaves most of it to others", async () => {
    const service = new Service();
    const addresses = addressesOf(500, (i) => `100.64.${i % 250}.${i >> 8}`);
    expect(await service.exhaust(addresses)).to.equal(56);
    const sites = addressesOf(500, (i) => `2001:db8:${(i % 250).toString(16)}:${i >> 8}::1`);
    expect(await service.exhaust(sites)).to.equal(50);
  });

  for (const [name, crowd] of [
    ["500 addresses of a /48", addressesOf(500, (i) => `2001:db8:7:${i.toString(16)}::1`)],
    ["500 addresses of 5 /48s", addressesOf(500, (i) => `2001:${(i % 5) + 16}:7:${i.toString(16)}::1`)],
    ["500 addresses of a hundred /16s", addressesOf(500, (i) => `11.${i % 100}.${i >> 8}.${i & 255}`)],
    ["400 scattered addresses", scattered(400)],
    [
      "300 scattered addresses and whole /48s",
      [...scattered(300), ...addressesOf(200, (i) => `2001:${(i % 3) + 16}:7:${i.toString(16)}::1`)],
    ],
  ] as const) {
    it(`${name} leave something to newcomers from elsewhere, then and on all later days`, async () => {
      const service = new Service();
      for (let day = 0; day < 3; day++) {
        await service.exhaust(crowd);
        for (const newcomer of newcomersOf(day))
          expect(await service.ask(newcomer), `${newcomer} on day ${day}`).to.equal(undefined);
        for (const end = service.nowMs + DAY; service.nowMs < end; service.nowMs += 6 * HOUR)
          await service.exhaust(crowd);
      }
    });
  }

  it("500 scattered addresses use up what there is, not what is refilled: a newcomer waits three minutes", async () => {
    const service = new Service();
    const crowd = scattered(500);
    await service.exhaust(crowd);
    const waits = await service.ask("203.0.113.7");
    expect(waits).to.be.within(170, 173);
    for (const end = service.nowMs + (waits ?? 0) * SECOND; service.nowMs < end; service.nowMs += 10 * SECOND)
      await service.exhaust(crowd);
    expect(await service.ask("203.0.113.7")).to.equal(undefined);
  });

  it("as many scattered addresses as a day's budget delay newcomers for a day, and nobody afterwards", async () => {
    const service = new Service(512);
    const crowd = scattered(512);
    for (; service.nowMs < DAY + HOUR; service.nowMs += HOUR / 2) await service.exhaust(crowd);
    for (let hour = 0; hour < 24; hour++, service.nowMs += HOUR) {
      await service.exhaust(crowd);
      expect(await service.ask(`198.${hour}.100.7`), `after ${hour} hours more`).to.equal(undefined);
    }
  });

  it("leaves something to a newcomer in a network where others have had much", async () => {
    const service = new Service();
    await service.exhaust([...scattered(400), ...addressesOf(20, (i) => `198.51.100.${i}`)]);
    expect(await service.ask("11.7.200.200"), "beside one of the scattered").to.equal(undefined);
  });

  it("keeps within a day's sum in any 24 hours, whoever asks whenever, and says how long to wait", async () => {
    const asker = fc.tuple(fc.nat(3), fc.nat(40), fc.nat(40)).map(([a, b, c]) => `11.${a}.${b}.${c}`);
    const step = fc.record({ pauseMs: fc.nat(DAY / 4), askers: fc.array(asker, { minLength: 1, maxLength: 60 }) });
    const history = fc.record({ perDay: fc.integer({ min: 1, max: 80 }), steps: fc.array(step, { maxLength: 40 }) });
    await fc.assert(
      fc.asyncProperty(history, async ({ perDay, steps }) => {
        const service = new Service(perDay);
        for (const { pauseMs, askers } of steps) {
          service.nowMs += pauseMs;
          for (const address of askers) await service.ask(address);
        }
        expect(service.mostInADay).to.be.at.most(perDay);
        const waits = (await service.ask("11.0.0.0")) ?? 0;
        service.nowMs += Math.max(0, waits * SECOND - 2);
        if (waits > 0) expect(await service.ask("11.0.0.0"), "a little earlier").to.be.a("number");
        service.nowMs += 4;
        if (waits > 0) expect(await service.ask("11.0.0.0")).to.equal(undefined);
      }),
      { seed: SEED, numRuns: count(100, 2_000) },
    );
  });

  it("is one for all relayers on a store, also at the same moment, and keeps no address", async function () {
    this.timeout(60_000);
    const store = await openTestStore({});
    try {
      const relayers = addressesOf(3, String).map(() => new MintBudget(40, storeCounts(store.db)));
      const asked = scattered(90).map((address, i) => relayers[i % 3]?.take(hashedNetworks("key", address)));
      const outcomes = await Promise.allSettled(asked);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).to.have.length(20);
      for (const outcome of outcomes)
        if (outcome.status === "rejected") expect(outcome.reason).to.have.property("code", "rate_limited");
      const rows = await store.db.selectFrom("mint_counts").select("name").execute();
      expect(rows.filter(({ name }) => name !== "all")).to.have.length(60);
      expect(rows.every(({ name }) => name === "all" || /^[0-9a-f]{64}$/.test(name))).to.equal(true);
    } finally {
      await store.close();
    }
  });
});
