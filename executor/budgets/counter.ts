/** One budget on this keyholder: its leases of the present window, and the spends that wait for more. */
import { randomBytes } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import { WINDOW_SECONDS } from "../../protocol/budgetTerms";
import type { Budget, LeaseTerms, UsedNow } from "../../protocol/budgets";
import type { AccountId, Cid, Hash32, KeyId } from "../../protocol/ids";
import { OpRefusal } from "../ops/refusal";
import { Slices, sliceOf, type Landed } from "./slices";

export interface Spend {
  readonly amount: bigint;
  readonly limit: bigint;
  /** Aborted when the run is over. */
  readonly over?: AbortSignal | undefined;
}

/** Whose credit pays for leases. */
export interface Payer {
  /** For the account's list of its budgets. */
  readonly cid: Cid;
  readonly keyId: KeyId | AccountId;
  readonly isAccountKey: boolean;
  /** 0 = none. */
  readonly capCents: bigint;
}

/** What a look at the chain found, and its head then. */
export interface Found {
  readonly head: bigint;
  readonly leases: readonly Landed[];
}

/** The keyholder's own reads. All throw KeywrightError `chain_unavailable`. */
export interface BudgetChain {
  /** How long a lease may take to be as deep as the network asks for. */
  readonly patienceMs: number;
  /** Time of the newest block, in seconds, at most a second after it was read. */
  time(): Promise<bigint>;
  used(budget: Budget): Promise<UsedNow>;
  /**
   * The leases of these names on the budget's counter of the window `index` that are as deep in the chain as the
   * network asks for.
   * @param since the head when they were last looked for: they are searched from there, however long ago that was.
   */
  leases(budget: Budget, index: bigint, ids: readonly Hash32[], since: bigint | undefined): Promise<Found>;
}

/** Has a lease sent. What it says is advice: only the chain shows whether a lease exists. */
export interface Carrier {
  /** Resolves when the lease is said to be sent or on the chain. @throws KeywrightError the reason why it is not. */
  send(terms: LeaseTerms, payer: Payer): Promise<void>;
}

export interface Clock {
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}
const CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

/** As long as a permission counts: see `isFresh`. */
const LOOKED_FOR_MS = 1_000;
/** How long others wait for a lease, instead of leasing another one: so long, and more than once in any case. */
const EXPECTED_FOR_MS = 5 * 60_000;
const EXPECTED_FOR_PATIENCES = 2;
const FIRST_LOOK_MS = 25;
const SLOWEST_LOOK_MS = 1_000;
const MAX_WAITING = 256;
const MAX_GIVEN_UP = 128;
const MAX_TRIES = 8;

interface Waiting extends Spend {
  readonly payer: Payer;
  readonly resolve: (left: bigint) => void;
  readonly reject: (error: unknown) => void;
}
/** A lease of this window that is not on the chain, as far as known, or not any more. */
interface Expected {
  readonly terms: LeaseTerms;
  since: number;
  /** Said not to be sent. If it comes all the same it counts, but nothing waits for it. */
  isGivenUp: boolean;
  /** Asked for in the window before: the block that carries it out may be of this one. */
  readonly isOfEdge?: true;
  /** When it was last looked for, and the chain's head then. */
  looked?: { readonly at: number; readonly head: bigint };
}

export class Counter {
  #index = -1n;
  #slices = new Slices();
  #leases = new Map<Hash32, Expected>();
  /** The counter as last read. */
  #used = 0n;
  #lookedAt = -Infinity;
  /** When the present window was entered. */
  #enteredAt = -Infinity;
  readonly #waiting: Waiting[] = [];
  #isServing = false;
  readonly #budget: Budget;
  readonly #seconds: bigint;
  readonly #chain: BudgetChain;
  readonly #carrier: Carrier;
  readonly #clock: Clock;

  constructor(budget: Budget, chain: BudgetChain, carrier: Carrier, clock = CLOCK) {
    this.#budget = budget;
    this.#seconds = WINDOW_SECONDS[budget.window];
    this.#chain = chain;
    this.#carrier = carrier;
    this.#clock = clock;
  }

  /** Nothing waits, and by this clock its window is over: it holds nothing that could still be spent. */
  isOver(nowSeconds: number): boolean {
    const isNew = this.#index < 0n;
    return !isNew && this.#waiting.length === 0 && BigInt(Math.floor(nowSeconds)) / this.#seconds > this.#index;
  }

  /** Nothing waits, and nothing was leased: dropping it wastes nothing. */
  get holdsNothing(): boolean {
    return this.#waiting.length === 0 && this.#leases.size === 0;
  }

  /** One after the other, in the order of the calls. */
  spend(payer: Payer, spend: Spend): Promise<bigint> {
    if (this.#waiting.length >= MAX_WAITING)
      throw new OpRefusal("limit_exceeded", `more than ${MAX_WAITING} spends of ${this.#budget.name} wait`);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...spend, payer, resolve, reject });
      if (!this.#isServing) void this.#serveAll();
    });
  }

  async #serveAll(): Promise<void> {
    this.#isServing = true;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const { resolve, reject } = next;
      await this.#serve(next).then(resolve, reject);
      this.#waiting.shift();
    }
    this.#isServing = false;
  }

  async #serve(spend: Waiting): Promise<bigint> {
    const { amount, limit, over } = spend;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      await this.#look();
      if (over?.aborted === true) throw RUN_IS_OVER;
      if (amount > 0n && this.#slices.spend(amount, limit)) return this.#left(limit);
      const underWay = this.#underWay();
      if (amount > 0n && underWay !== undefined) {
        await this.#untilThere(underWay, spend);
        continue;
      }
      if (!(await this.#readUsed())) continue;
      if (amount === 0n) return this.#left(limit);
      const missing = amount - this.#slices.available(limit);
      const room = limit > this.#used ? limit - this.#used : 0n;
      const lease = missing > room ? this.#ofEdge() : this.#newLease(spend, missing, room);
      if (lease === undefined) throw exceeded(this.#budget, spend, this.#left(limit));
      await this.#untilThere(lease, spend);
    }
    throw unavailable("others leased it again and again");
  }

  /** What calls with this limit can still spend, as far as this machine knows: others may have leased since. */
  #left(limit: bigint): bigint {
    const room = limit > this.#used ? limit - this.#used : 0n;
    return room + this.#slices.available(limit);
  }

  /** Enters the window of the chain's time, and looks whether what was leased is on the chain. */
  async #look(): Promise<void> {
    this.#enter((await this.#chain.time()) / this.#seconds);
    const now = this.#clock.now();
    if (now - this.#lookedAt < LOOKED_FOR_MS) return;
    const late = [...this.#leases.keys()].filter((id) => !this.#slices.isHeld(id));
    await this.#read([...new Set([...this.#slices.unsettled, ...late])]);
    this.#lookedAt = this.#clock.now();
    // Looked for once more after that time: nobody may have looked since the run that asked for it ended.
    for (const id of late) {
      const lease = this.#leases.get(id);
      if (lease?.looked !== undefined && !this.#slices.isHeld(id) && this.#isTooOld(lease, lease.looked.at))
        this.#leases.delete(id);
    }
    // The look may have taken long: nothing of a window that has ended is spent.
    this.#enter((await this.#chain.time()) / this.#seconds);
  }

  #isTooOld({ since }: Expected, at: number): boolean {
    return at - since > Math.max(EXPECTED_FOR_MS, EXPECTED_FOR_PATIENCES * this.#chain.patienceMs);
  }

  /** A lease that may be on the chain soon, or again. */
  #underWay(): Expected | undefined {
    const now = this.#clock.now();
    return [...this.#leases.values()].find(
      (lease) => !lease.isGivenUp && !this.#slices.isThere(lease.terms.id) && !this.#isTooOld(lease, now),
    );
  }

  /** What may fill this window although nothing of it has been spent: counted there, and not deep enough yet. */
  #ofEdge(): Expected | undefined {
    if (this.#clock.now() > this.#enteredAt + this.#chain.patienceMs) return undefined;
    const notHeld = this.#used - this.#slices.leased;
    return [...this.#leases.values()].find(
      (lease) => lease.isOfEdge === true && !this.#slices.isHeld(lease.terms.id) && lease.terms.amount <= notHeld,
    );
  }

  /** Windows never come back: an endpoint that is behind cannot open a past one again. */
  #enter(index: bigint): void {
    if (index <= this.#index) return;
    // The contract counts by the time of the block that carries a lease out, which may be after the edge.
    const unseen = [...this.#leases].filter(([id]) => index === this.#index + 1n && !this.#slices.isHeld(id));
    this.#index = index;
    this.#slices = new Slices();
    this.#leases = new Map(
      unseen.map(([id, { terms, since }]) => [id, { terms, since, isGivenUp: true, isOfEdge: true }]),
    );
    this.#used = 0n;
    this.#lookedAt = -Infinity;
    this.#enteredAt = this.#clock.now();
  }

  /** False if another window has begun. */
  async #readUsed(): Promise<boolean> {
    const { used, timestamp } = await this.#chain.used(this.#budget);
    const index = timestamp / this.#seconds;
    this.#used = used;
    if (index === this.#index) return true;
    this.#enter(index);
    return false;
  }

  async #read(ids: readonly Hash32[]): Promise<void> {
    if (ids.length === 0) return;
    const index = this.#index;
    const before = ids.flatMap((id) => this.#leases.get(id)?.looked?.head ?? []);
    const since = before.length === 0 ? undefined : before.reduce(min);
    const { head, leases } = await this.#chain.leases(this.#budget, index, ids, since);
    if (index !== this.#index) return;
    const now = this.#clock.now();
    for (const id of ids) {
      const landed = leases.find((one) => one.id === id);
      const lease = this.#leases.get(id);
      if (landed === undefined && lease !== undefined && this.#slices.isThere(id)) lease.since = now;
      if (lease !== undefined) lease.looked = { at: now, head };
      this.#slices.put(id, landed);
      if (landed !== undefined && landed.used > this.#used) this.#used = landed.used;
    }
  }

  /** Has the lease sent and waits until it is on the chain. Returns when it is worth trying to spend. */
  async #untilThere(lease: Expected, { payer, over }: Waiting): Promise<void> {
    const { id } = lease.terms;
    const isOfEdge = lease.isOfEdge === true;
    const until = (isOfEdge ? this.#enteredAt : this.#clock.now()) + this.#chain.patienceMs;
    let failure: unknown;
    // Where there is no room, what is sent only now does not help.
    const sending = isOfEdge ? Promise.resolve() : this.#carrier.send(lease.terms, payer);
    const sent = sending.catch((error: unknown) => {
      failure = error;
      lease.isGivenUp = true;
    });
    let wake: Promise<void> | undefined = sent;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(2 * pauseMs, SLOWEST_LOOK_MS)) {
      await Promise.race([
        this.#clock.sleep(pauseMs),
        ...(wake === undefined ? [] : [wake.then(() => (wake = undefined))]),
      ]);
      await this.#read([id]);
      if (this.#slices.isThere(id)) return;
      if (failure !== undefined) return requireOther(failure);
      if (over?.aborted === true) throw RUN_IS_OVER;
      if ((await this.#chain.time()) / this.#seconds !== this.#index) return;
      if (this.#clock.now() > until && isOfEdge) return;
      if (this.#clock.now() > until) throw unavailable("its lease is not on the chain yet; it can be tried again");
    }
  }

  /** For this spend and the others that wait with the same limit. */
  #newLease({ limit }: Waiting, missing: bigint, room: bigint): Expected {
    const others = this.#waiting.slice(1).filter((other) => other.limit === limit && other.over?.aborted !== true);
    const wanted = others.reduce((sum, { amount }) => sum + amount, missing);
    const amount = min(room, sliceOf(limit, wanted));
    const id = `0x${randomBytes(32).toString("hex")}` as Hash32;
    const terms = { budget: this.#budget, amount, limit, id };
    const lease: Expected = { terms, since: this.#clock.now(), isGivenUp: false };
    this.#leases.set(id, lease);
    // Endpoints refuse to look for more: of those that nothing waits for the oldest go.
    const givenUp = [...this.#leases.values()].filter((one) => one.isGivenUp && !this.#slices.isHeld(one.terms.id));
    const [oldest] = givenUp;
    if (oldest !== undefined && givenUp.length > MAX_GIVEN_UP) this.#leases.delete(oldest.terms.id);
    return lease;
  }
}

/** Another machine was quicker: worth another try. @throws for any other reason. */
function requireOther(failure: unknown): void {
  if (!(failure instanceof KeywrightError)) throw failure;
  if (failure.code === "budget_exceeded") return;
  throw unavailable(LACKS_CREDIT.has(failure.code) ? `${failure.detail} ${RUN_HOLDS_CREDIT}` : failure.detail);
}
const LACKS_CREDIT: ReadonlySet<string> = new Set(["insufficient_credit", "key_cap_spent", "key_day_spent"]);
const RUN_HOLDS_CREDIT = "A run holds the price of its time limit, which a lower timeout_ms leaves to the lease.";

function exceeded({ name, window }: Budget, { amount, limit }: Spend, left: bigint): OpRefusal {
  const rest = left > 0n ? `${left} of ${limit} are left` : `nothing of ${limit} is left`;
  return new OpRefusal("budget_exceeded", `${amount} is more than the budget ${name} has in this ${window}: ${rest}`);
}

const unavailable = (why: string): OpRefusal =>
  new OpRefusal("budget_unavailable", `nothing can be spent of the budget now: ${why}`);
const RUN_IS_OVER = new OpRefusal("limit_exceeded", "the run is over");
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
