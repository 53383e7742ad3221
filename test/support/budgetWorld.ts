/**
 * A simulated chain with the budgets' counters, several keyholders on it, and a relayer between them that sends,
 * repeats, withholds and lies as a history says. The keyholders are the real code.
 */
import { counterOf, type Budget, type LeaseTerms, type UsedNow } from "../../protocol/budgets";
import { WINDOW_SECONDS } from "../../protocol/budgetTerms";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, ActionHash, Cid, Hash32, KeyId } from "../../protocol/ids";
import { Counter, type BudgetChain, type Carrier, type Found, type Payer } from "../../executor/budgets/counter";
import type { Landed } from "../../executor/budgets/slices";
import { SimulatedTime } from "./simulator/time";

export const BUDGET: Budget = {
  account: `0x${"a1".repeat(32)}` as AccountId,
  action: `0x${"c1".repeat(32)}` as ActionHash,
  name: "usdc",
  window: "hour",
};
const HOUR = WINDOW_SECONDS.hour;
const FINAL = 16;
const SEARCHED = 2 * FINAL;
export const PAYER: Payer = {
  cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid,
  keyId: BUDGET.account as unknown as KeyId,
  isAccountKey: true,
  capCents: 0n,
};

/** What becomes of a lease that a keyholder asks for. */
export type Fate =
  "sent" | "twice" | "late" | "dropped" | "sent, said to fail" | "no credit" | "dropped, said to be sent";

interface Block {
  readonly timestamp: bigint;
  readonly leases: (LeaseTerms & { readonly used: bigint })[];
}

export interface Spent {
  readonly index: bigint;
  readonly amount: bigint;
  readonly limit: bigint;
}

export class BudgetWorld {
  readonly time = new SimulatedTime();
  readonly spent: Spent[] = [];
  readonly refused: unknown[] = [];
  /** Fates of the next leases; then all are sent. */
  fates: Fate[] = [];
  #blocks: Block[];
  #pool: LeaseTerms[] = [];
  #withheld: LeaseTerms[] = [];
  readonly confirmations: number;

  constructor(confirmations: number) {
    this.confirmations = confirmations;
    this.#blocks = [{ timestamp: 1_000n * HOUR, leases: [] }];
  }

  get head(): number {
    return this.#blocks.length - 1;
  }

  get now(): bigint {
    return this.#blocks[this.head]?.timestamp ?? 0n;
  }

  /** Carries out what is in the pool. */
  mine(seconds: number): void {
    const timestamp = this.now + BigInt(Math.max(1, seconds));
    const leases: Block["leases"] = [];
    this.#blocks.push({ timestamp, leases });
    for (const lease of this.#pool.splice(0)) {
      const used = this.used(timestamp / HOUR) + lease.amount;
      if (used <= lease.limit) leases.push({ ...lease, used });
    }
  }

  /** Drops the newest blocks. Their leases return to the pool, behind what waits there. */
  reorganize(depth: number): void {
    const dropped = this.#blocks.splice(Math.max(1, this.#blocks.length - depth));
    this.#pool.push(...dropped.flatMap(({ leases }) => leases));
  }

  /** The withheld leases are sent now, all of them. */
  release(): void {
    this.#pool.push(...this.#withheld.splice(0));
  }

  /** A stolen payer leases what it likes. */
  steal(terms: Omit<LeaseTerms, "budget">): void {
    this.#pool.push({ ...terms, budget: BUDGET });
  }

  /** The counter in a window, at a block. */
  used(index: bigint, head = this.head): bigint {
    const within = this.#blocks.slice(0, head + 1).filter(({ timestamp }) => timestamp / HOUR === index);
    return within.flatMap(({ leases }) => leases).reduce((sum, { amount }) => sum + amount, 0n);
  }

  get windows(): readonly bigint[] {
    return [...new Set(this.#blocks.map(({ timestamp }) => timestamp / HOUR))];
  }

  /** As `BudgetReads`: in the newest blocks, and in those around the last look. */
  leasesAt(counter: Hash32, head: number, since: number): readonly Landed[] {
    const isSearched = (block: number): boolean =>
      block >= head - SEARCHED || (block >= since - FINAL && block <= since - FINAL + SEARCHED);
    return this.#blocks
      .slice(0, Math.max(0, head + 2 - this.confirmations))
      .flatMap(({ timestamp, leases }, number) =>
        leases
          .filter(() => isSearched(number) && counterOf(BUDGET, timestamp / HOUR) === counter)
          .map(({ id, amount, used }) => ({ id, amount, used, isFinal: head - number >= FINAL })),
      );
  }

  blockAt(head: number): bigint {
    return this.#blocks[Math.min(head, this.head)]?.timestamp ?? 0n;
  }

  send(terms: LeaseTerms): Promise<void> {
    const fate = this.fates.shift() ?? "sent";
    // An honest relayer sends a lease once, and again only if a reorganization drops it.
    const isThere = [...this.#pool, ...this.#blocks.flatMap(({ leases }) => leases)].some(({ id }) => id === terms.id);
    if (fate === "sent" && isThere) return this.time.sleep(300);
    if (fate === "sent" || fate === "twice" || fate === "sent, said to fail") this.#pool.push(terms);
    if (fate === "twice") this.#pool.push(terms);
    if (fate === "late") this.#withheld.push(terms);
    if (fate === "no credit" || fate === "sent, said to fail")
      return Promise.reject(new KeywrightError("insufficient_credit", "The account has 0 cents."));
    // Answers of what is on its way take a while, and may be lost.
    return fate === "sent" ? this.time.sleep(300) : new Promise(() => undefined);
  }
}

/** One keyholder: its view of the chain, behind by some blocks, and its clock, which runs wrong. */
export class SimulatedKeyholder implements BudgetChain, Carrier {
  readonly patienceMs: number;
  /** Blocks that its endpoints are behind. */
  behind = 0;
  #time = { seconds: 0n, readAt: -Infinity };
  #counter: Counter;
  readonly #world: BudgetWorld;
  readonly #rate: number;

  constructor(world: BudgetWorld, rate = 1, patienceMs = 60_000) {
    this.#world = world;
    this.patienceMs = patienceMs;
    this.#rate = rate;
    this.#counter = this.#fresh();
  }

  /** Everything in memory is lost. */
  kill(): void {
    this.#counter = this.#fresh();
    this.#time = { seconds: 0n, readAt: -Infinity };
  }

  /** Resolves with what is left, or undefined when it was refused. What was spent by a killed one counts, too. */
  async spend(amount: bigint, limit: bigint, over?: AbortSignal): Promise<bigint | undefined> {
    try {
      const left = await this.#counter.spend(PAYER, { amount, limit, over });
      this.#world.spent.push({ index: this.#time.seconds / HOUR, amount, limit });
      return left;
    } catch (error) {
      this.#world.refused.push(error);
      return undefined;
    }
  }

  async time(): Promise<bigint> {
    if (this.#now() - this.#time.readAt > 1_000) this.#read();
    return this.#time.seconds;
  }

  async used(): Promise<UsedNow> {
    const timestamp = this.#read();
    return { used: this.#world.used(timestamp / HOUR, this.#head()), timestamp, blockNumber: BigInt(this.#head()) };
  }

  async leases(budget: Budget, index: bigint, ids: readonly Hash32[], since?: bigint): Promise<Found> {
    const head = this.#head();
    const counter = counterOf(budget, index);
    const leases = this.#world.leasesAt(counter, head, Number(since ?? head)).filter(({ id }) => ids.includes(id));
    return { head: BigInt(head), leases };
  }

  send(terms: LeaseTerms): Promise<void> {
    return this.#world.send(terms);
  }

  #head(): number {
    return Math.max(0, this.#world.head - this.behind);
  }

  /** As `Chain`: its time never goes back, although a view may. */
  #read(): bigint {
    const timestamp = this.#world.blockAt(this.#head());
    const seconds = timestamp > this.#time.seconds ? timestamp : this.#time.seconds;
    this.#time = { seconds, readAt: this.#now() };
    return timestamp;
  }

  #now(): number {
    return this.#world.time.now * this.#rate;
  }

  #fresh(): Counter {
    const { time } = this.#world;
    return new Counter(BUDGET, this, this, { now: () => this.#now(), sleep: (ms) => time.sleep(ms) });
  }
}
