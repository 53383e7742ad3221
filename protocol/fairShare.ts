/**
 * Max-min fair sharing of something that accounts compete for: places for runs, open fetches, bytes, the event loop.
 *
 * - Whoever holds least is served next; among equals whoever used least of late while others waited. Nobody overtakes
 *   it.
 * - Some room is kept free of those who hold something already: for accounts that were here lately, and for a new one.
 * - A quarter is kept for accounts whose uses are short, also from grants that rested and woke or are not in use yet:
 *   they do not wait until long ones are revoked. Half of it is for those of them that had many of late. A use that
 *   turns out long in there is revoked as soon as a short one waits, and for a while those of its account count as
 *   long, unless many of them were short.
 * - A place in a full queue is taken from whoever has most of them. An account with no place always gets one, but where
 *   accounts are cheap (`crowdOf`).
 * - What is lent is taken back as soon as somebody waits for it.
 * - If an account has waited for `patienceMs`, a grant of whoever holds most is revoked, if it is at least as old.
 *
 * Grants exist only inside a scope (`inScope`), which returns them when it is left, by whatever path, also those that
 * arrive after it was left.
 */

export interface FairShareOptions {
  /** How much there is. */
  readonly total: number;
  /** What is kept free for each account that holds nothing; default 1. At most half of the total is kept free. */
  readonly unit?: number;
  /** Most that one account may hold; default no limit. */
  readonly mostEach?: number;
  /** Most requests that wait; default no limit. */
  readonly mostWaiting?: number;
  /**
   * Where one asker can be many accounts: the crowd that an account may be part of. A queue that is full of accounts
   * with one request each keeps no newcomer of the largest crowd, and is never longer than twice its limit.
   */
  readonly crowdOf?: (name: string) => string;
  /** Most requests of one account that wait; default no limit. */
  readonly mostWaitingEach?: number;
  /** After how many milliseconds of waiting others' grants are revoked; default never. */
  readonly patienceMs?: number;
  /** Time between two revocations, where ending a use and beginning the next is costly; default 20. */
  readonly revokeEveryMs?: number;
  /** What else must hold for a further grant. Whoever changes the answer calls `serve`. */
  readonly mayGrant?: () => boolean;
}

type Optional = "crowdOf" | "mayGrant";

/** Refused, or removed from the queue in favour of an account with less in it. */
export class Crowded extends Error {
  override readonly name = "Crowded";
  constructor(readonly retryAfterSeconds: number) {
    super(`too many requests of this account wait; try again in ${retryAfterSeconds} s`);
  }
}

/** Not granted in the time that its asker had. */
export class NotInTime extends Crowded {}

/** The grant was revoked, because others had waited too long for what its account holds. */
export class Preempted extends Error {
  override readonly name = "Preempted";
  constructor() {
    super("other accounts needed what this one held most of");
  }
}

interface Account {
  readonly name: string;
  readonly waiting: Ask[];
  readonly grants: Set<Held>;
  held: number;
  /** Amount times milliseconds held while somebody waited, halved every few seconds; as of `countedAt`. */
  used: number;
  countedAt: number;
  /** The same moment in milliseconds during which somebody waited. */
  countedAtCrowded: number;
  /**
   * How long its uses are: their geometric mean, which one long use among short ones changes little. Recent ones count
   * most; unknown before the first has ended.
   */
  usualMs: number;
  /** How many uses were short since a long one was forgiven for them, up to a limit. */
  shortUses: number;
  /** Till then its uses count as long: one was, in what is kept for short ones, and kept another waiting. */
  longUntil: number;
  askedAt: number;
  /** Accounts in the order in which they were served last, or came. */
  turn: number;
}

interface Ask {
  readonly amount: number;
  readonly since: number;
  readonly revoke: () => void;
  readonly settle: (held: Held) => void;
  readonly refuse: (reason: unknown) => void;
}

interface Held {
  amount: number;
  since: number;
  readonly revoke: () => void;
  /** How long it was in use, without the time since `activeAt`. */
  activeMs: number;
  activeAt: number;
  isResting: boolean;
  /** It overtook others, or there was no room for it but what is kept for short uses. */
  readonly isAsShort: boolean;
  /** Whether its account's uses were short when it was granted, and whether there had been many. */
  readonly known: { readonly isShort: boolean; readonly isReliable: boolean };
  /** It is not in use yet, or has woken into what is kept for short uses: it does not count against them. */
  isBeyond: boolean;
  /** How much of what is kept for short uses it takes. */
  asShort: number;
  isRevoked: boolean;
  isReturned: boolean;
  isKept: boolean;
  isLent: boolean;
}

/** What was granted. Ends with its scope. */
export interface Grant {
  /** It does not count while its holder waits for something else. */
  rest(): void;
  /** It counts again, even if there is no room for it any more. */
  wake(): void;
  /**
   * From now on it is not revoked, or not before it is in use. With `yields` it does not count against short uses till
   * then.
   */
  keep(yields?: "yields"): void;
  /** It is in use from now on: others' patience with it begins. */
  use(): void;
  /** Only so much of it is needed from now on. */
  shrink(amount: number): void;
  /** It is not needed any more, but of some use: `letGo` is called when others need it, at once if they do already. */
  lend(letGo: () => void): void;
}

const HALF_LIFE_MS = 5_000;
/** How long an account counts as wanting something after it asked last. */
const LATELY_MS = 10_000;
/** Uses up to this are short. */
const SHORT_MS = 500;
/** Who had so many short uses will have more of them; on a loaded machine one may still take long, and is forgiven. */
const MANY_SHORT = 30;
/** How often those here with many short uses, or those here lately, are counted. */
const COUNT_EVERY_MS = 50;
/** Of accounts that did not ask meanwhile nothing is known any more. */
const FORGOTTEN_MS = 60_000;
const MAX_RETRY_SECONDS = 60;
const REVOKE_EVERY_MS = 20;
/** A timer may be a little early. */
const TIMER_SLACK = 0.9;
/** How often waiting requests are looked at again when nothing is returned or revoked. */
const MAX_TICK_MS = 250;
const OVER = new Error("the scope was left");

/** Only scopes may ask: the method's name is not exported. */
const ask = Symbol("ask");
const giveBack = Symbol("give back");
const restOrWake = Symbol("rest or wake");
const keep = Symbol("keep");
const use = Symbol("use");
const shrink = Symbol("shrink");
const lend = Symbol("lend");

export class FairShare {
  /** Those who hold, wait, or asked in the last minute: maybe very many. Only `#forgetOthers` looks at them all. */
  readonly #accounts = new Map<string, Account>();
  /** Those with requests that wait. */
  readonly #asking = new Set<Account>();
  /** Those with grants, also resting ones, in the order in which they were served. */
  readonly #holding = new Set<Account>();
  /** Those that had many short uses. */
  readonly #reliable = new Set<Account>();
  /** Those that asked lately, in the order in which they did, and how many of them hold nothing. */
  readonly #lately = new Set<Account>();
  #latelyWithout = 0;
  #forgotLatelyAt = -Infinity;
  #turns = 0;
  readonly #options: Required<Omit<FairShareOptions, Optional>> & Pick<FairShareOptions, Optional>;
  #taken = 0;
  /** How much of it does not count against short uses. */
  #beyond = 0;
  /** How much of what is kept for short uses is taken; by accounts that had some, and by those that had many. */
  #asShort = { all: 0, short: 0, reliable: 0 };
  #waiting = 0;
  /** How what is lent is taken back, oldest first. */
  readonly #lent = new Map<Held, () => void>();
  /** Revoked and not returned yet. */
  readonly #revoked = new Set<Held>();
  /** For how long somebody waited, without the time since `#crowdedSince`. */
  #crowdedMs = 0;
  #crowdedSince = 0;
  #meanHeldMs = 50;
  #reliableHere = 0;
  #reliableCountedAt = -Infinity;
  #sweptAt = performance.now();
  #revokedAt = -Infinity;
  #ticker: NodeJS.Timeout | undefined;
  #leaving: NodeJS.Immediate | undefined;

  constructor(options: FairShareOptions) {
    const unlimited = { mostEach: Infinity, mostWaiting: Infinity, mostWaitingEach: Infinity, patienceMs: Infinity };
    this.#options = { unit: 1, revokeEveryMs: REVOKE_EVERY_MS, ...unlimited, ...options };
  }

  /** Granted at the moment and not resting. */
  get taken(): number {
    return this.#taken;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Whether with so much more the account would hold above what each could that wants something, beside what is kept
   * free: for that it waits for itself. Looks at those that hold or wait, once for each use that asks.
   */
  hasItsPart(name: string, amount: number): boolean {
    const account = this.#accounts.get(name);
    if (account === undefined || account.held === 0) return false;
    const wanting = new Set([...this.#holding, ...this.#asking]);
    const wantingNow = [...wanting].filter((one) => one.held > 0 || one.waiting.length > 0);
    return account.held + amount > (this.#options.total - this.#keptFree(account)) / wantingNow.length;
  }

  /** Grants whatever may be granted now. */
  serve(): void {
    for (let next = this.#grantable(); next !== undefined; next = this.#grantable())
      this.#grant(next.account, next.overtakes);
    if (this.#waiting > 0) this.#lent.values().next().value?.();
    if (this.#waiting > 0) this.#ticker ??= setInterval(() => this.#tick(), this.#tickMs).unref();
    else this.#ticker = void clearInterval(this.#ticker);
  }

  /** An amount above the total counts as the total. Rejects with Crowded, or the signal's reason. */
  [ask](name: string, wanted: number, signal: AbortSignal, revoke: () => void): Promise<Held> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const { promise, resolve, reject } = Promise.withResolvers<Held>();
    const account = this.#accountOf(name);
    const leave = (): void => (this.#remove(account, asked), reject(signal.reason as Error));
    const settled = (): void => signal.removeEventListener("abort", leave);
    const asked: Ask = {
      amount: Math.min(wanted, this.#options.total),
      since: performance.now(),
      revoke,
      settle: (held) => (settled(), resolve(held)),
      refuse: (reason) => (settled(), reject(reason as Error)),
    };
    this.#noteAsked(account, asked.since);
    account.waiting.push(asked);
    this.#asking.add(account);
    this.#countWaiting(1);
    this.serve();
    // Most are granted at once.
    if (account.waiting.includes(asked)) {
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    }
    if (account.waiting.length > this.#options.mostWaitingEach) this.#refuseNewest(account);
    else if (this.#waiting > this.#options.mostWaiting) this.#refuseOne(account);
    if (this.#waiting > 0) this.#revokeLate();
    return promise;
  }

  [giveBack](name: string, held: Held): void {
    const account = this.#holderOf(name, held);
    if (account === undefined) return;
    account.grants.delete(held);
    if (account.grants.size === 0) this.#holding.delete(account);
    this.#lent.delete(held);
    this.#revoked.delete(held);
    if (!held.isResting) this.#count(account, -held.amount);
    held.isReturned = true;
    this.#setBeyond(held, false);
    const ms = Math.max(1, activeMsOf(held));
    account.usualMs = account.usualMs === Infinity ? ms : account.usualMs ** 0.7 * ms ** 0.3;
    if (ms <= SHORT_MS) this.#countShortUses(account, 1);
    this.#meanHeldMs = this.#meanHeldMs * 0.9 + (performance.now() - held.since) * 0.1;
    this.serve();
  }

  [restOrWake](name: string, held: Held, isResting: boolean): void {
    const account = this.#holderOf(name, held);
    if (account === undefined || held.isResting === isResting) return;
    held.isResting = isResting;
    if (isResting) held.activeMs += performance.now() - held.activeAt;
    held.activeAt = performance.now();
    this.#count(account, isResting ? -held.amount : held.amount);
    this.#setBeyond(held, !isResting && this.#taken + this.#keptForShort(account) > this.#options.total);
    this.serve();
  }

  [keep](name: string, held: Held, isBeyond: boolean): void {
    held.isKept = true;
    if (this.#holderOf(name, held) === undefined) return;
    this.#setBeyond(held, isBeyond);
    this.serve();
  }

  [use](held: Held): void {
    held.isKept = false;
    held.activeMs = 0;
    held.since = held.activeAt = performance.now();
    this.#setBeyond(held, false);
  }

  [shrink](name: string, held: Held, amount: number): void {
    const account = this.#holderOf(name, held);
    const less = held.amount - amount;
    if (account === undefined || less <= 0) return;
    if (!held.isResting) this.#count(account, -less);
    if (held.isBeyond) this.#beyond -= less;
    held.amount = amount;
    this.#countAsShort(held);
    this.serve();
  }

  [lend](name: string, held: Held, letGo: () => void): void {
    if (this.#holderOf(name, held) === undefined) return;
    held.isKept = true;
    held.activeMs = activeMsOf(held);
    held.isLent = true;
    this.#lent.set(held, () => (letGo(), this[giveBack](name, held)));
    this.serve();
  }

  #setBeyond(held: Held, isBeyond: boolean): void {
    if (held.isBeyond !== isBeyond) this.#beyond += isBeyond ? held.amount : -held.amount;
    held.isBeyond = isBeyond;
    this.#countAsShort(held);
  }

  /** Whatever changes whether the grant takes of what is kept for short uses calls this. */
  #countAsShort(held: Held): void {
    const takes = held.isAsShort && !held.isReturned && !held.isResting && !held.isBeyond;
    const change = (takes ? held.amount : 0) - held.asShort;
    held.asShort += change;
    this.#asShort.all += change;
    if (held.known.isShort) this.#asShort.short += change;
    if (held.known.isReliable) this.#asShort.reliable += change;
  }

  #accountOf(name: string): Account {
    const known = this.#accounts.get(name);
    if (known !== undefined) return known;
    const now = performance.now();
    if (now - this.#sweptAt > LATELY_MS) this.#forgetOthers(now);
    const account = {
      name,
      waiting: [],
      grants: new Set<Held>(),
      held: 0,
      used: 0,
      usualMs: Infinity,
      shortUses: 0,
      longUntil: -Infinity,
      countedAt: now,
      countedAtCrowded: this.#crowdedFor(now),
      askedAt: now,
      turn: this.#turns++,
    };
    this.#accounts.set(name, account);
    return account;
  }

  #holderOf(name: string, held: Held): Account | undefined {
    const account = this.#accounts.get(name);
    return account?.grants.has(held) ? account : undefined;
  }

  /** Looks at all accounts, every ten seconds while new ones come: a few for each that asked meanwhile. */
  #forgetOthers(now: number): void {
    this.#sweptAt = now;
    this.#forgetLately(now);
    for (const account of this.#accounts.values()) {
      if (account.grants.size > 0 || account.waiting.length > 0 || now - account.askedAt <= FORGOTTEN_MS) continue;
      this.#accounts.delete(account.name);
      this.#reliable.delete(account);
    }
  }

  #noteAsked(account: Account, now: number): void {
    account.askedAt = now;
    if (!this.#lately.delete(account) && account.held === 0) this.#latelyWithout++;
    this.#lately.add(account);
  }

  /** Looks at each account once after it asked, and at one more every few milliseconds. */
  #forgetLately(now: number): void {
    if (now - this.#forgotLatelyAt < COUNT_EVERY_MS) return;
    this.#forgotLatelyAt = now;
    for (const account of this.#lately) {
      if (account.askedAt > now - LATELY_MS) return;
      this.#lately.delete(account);
      if (account.held === 0) this.#latelyWithout--;
    }
  }

  #countShortUses(account: Account, change: number): void {
    account.shortUses = Math.min(account.shortUses + change, 2 * MANY_SHORT);
    if (isReliable(account)) this.#reliable.add(account);
    else this.#reliable.delete(account);
  }

  #count(account: Account, change: number): void {
    const now = performance.now();
    account.used = this.#usedBy(account, now);
    account.countedAt = now;
    account.countedAtCrowded = this.#crowdedFor(now);
    const before = account.held;
    account.held += change;
    this.#taken += change;
    if (this.#lately.has(account)) this.#latelyWithout += Number(account.held === 0) - Number(before === 0);
  }

  #usedBy({ used, held, countedAt, countedAtCrowded }: Account, now = performance.now()): number {
    return (used + held * (this.#crowdedFor(now) - countedAtCrowded)) * 2 ** ((countedAt - now) / HALF_LIFE_MS);
  }

  #countWaiting(change: number): void {
    const now = performance.now();
    this.#crowdedMs = this.#crowdedFor(now);
    this.#crowdedSince = now;
    this.#waiting += change;
  }

  #crowdedFor(now: number): number {
    return this.#crowdedMs + (this.#waiting > 0 ? now - this.#crowdedSince : 0);
  }

  /** The next, or where there is only room that is kept from it, the next of those for whom it is kept. */
  #grantable(): { readonly account: Account; readonly overtakes: boolean } | undefined {
    if (this.#waiting === 0) return undefined;
    const next = this.#next();
    if (next === undefined) return undefined;
    if (this.#fits(next)) return { account: next, overtakes: false };
    const left = this.#part(4) + this.#beyond - this.#asShort.all;
    if (left <= 0 || this.#options.total - this.#taken + this.#beyond <= 0) return undefined;
    const account = [this.#isShort, this.#isReliablyShort]
      .map((mayBe) => this.#next(mayBe))
      .find((short) => short !== undefined && (short.waiting[0]?.amount ?? 0) <= left && this.#fits(short));
    return account && { account, overtakes: true };
  }

  /** Looks at those that wait, a few times for each request and return while there are any: their order changes. */
  #next(mayBe: (account: Account) => boolean = () => true): Account | undefined {
    let least: Account | undefined;
    for (const account of this.#asking) {
      const [first] = account.waiting;
      if (first === undefined || account.held + first.amount > this.#options.mostEach || !mayBe(account)) continue;
      if (least === undefined || this.#isBefore(account, least)) least = account;
    }
    return least;
  }

  /** It holds less, or used less of late, or was served before. */
  #isBefore(one: Account, other: Account): boolean {
    if (one.held !== other.held) return one.held < other.held;
    const now = performance.now();
    const [used, usedByOther] = [this.#usedBy(one, now), this.#usedBy(other, now)];
    return used === usedByOther ? one.turn < other.turn : used < usedByOther;
  }

  #fits(account: Account): boolean {
    return this.#freeFor(account) >= (account.waiting[0]?.amount ?? 0) && (this.#options.mayGrant?.() ?? true);
  }

  #freeFor(account: Account): number {
    const kept = account.held > 0 ? this.#keptFree(account) : this.#keptForShort(account);
    return this.#options.total - this.#taken - kept + (this.#isShort(account) ? this.#beyond : 0);
  }

  /**
   * Nothing from those with many short uses, what is for these from those with few; less what such uses take of it
   * already. Nothing while none is taken.
   */
  #keptForShort(asking: Account): number {
    const { short, reliable } = this.#asShort;
    if (this.#taken === 0 || this.#isReliablyShort(asking)) return 0;
    if (this.#isShort(asking)) return Math.max(0, this.#keptForReliable() - reliable);
    const isNew = asking.usualMs === Infinity && asking.held === 0;
    return isNew ? Math.max(0, Math.max(this.#part(8), this.#keptForReliable()) - short) : this.#keptFromLong;
  }

  get #keptFromLong(): number {
    return Math.max(0, this.#part(4) - this.#asShort.all);
  }

  /** Half of what is kept for short uses, but not less than one unit; nothing while no such account is here. */
  #keptForReliable(): number {
    return this.#countReliable(performance.now()) === 0 ? 0 : this.#halfOfKept;
  }

  get #halfOfKept(): number {
    return Math.min(this.#part(4), this.#part(8) || this.#options.unit);
  }

  /** One of so many equal parts of the whole. */
  #part(parts: number): number {
    const { total, unit } = this.#options;
    return unit === 0 ? 0 : Math.floor(total / parts / unit) * unit;
  }

  /** Its uses are short, and no more than an equal share of the whole, or if they were many, of what is kept for it. */
  readonly #isShort = (account: Account): boolean => {
    const now = performance.now();
    if (!areUsesShort(account, now)) return false;
    const equal = this.#options.total / this.#countHere(now);
    const most = isReliable(account)
      ? Math.max(equal, this.#halfOfKept / Math.max(1, this.#countReliable(now)))
      : equal;
    return this.#usedBy(account) <= (most * HALF_LIFE_MS) / Math.LN2;
  };

  readonly #isReliablyShort = (account: Account): boolean => isReliable(account) && this.#isShort(account);

  /** About how many want something, or did lately: who went a while ago takes nothing from anyone. */
  #countHere(now: number): number {
    this.#forgetLately(now);
    return Math.max(1, this.#lately.size, this.#holding.size + this.#asking.size);
  }

  /** How many accounts with many short uses are here, as of some milliseconds ago: all such are looked at for it. */
  #countReliable(now: number): number {
    if (now - this.#reliableCountedAt < COUNT_EVERY_MS) return this.#reliableHere;
    this.#reliableCountedAt = now;
    const isHere = ({ waiting, held, askedAt }: Account): boolean =>
      waiting.length > 0 || held > 0 || now - askedAt < LATELY_MS;
    const here = [...this.#reliable].filter((account) => areUsesShort(account, now) && isHere(account));
    return (this.#reliableHere = here.length);
  }

  /**
   * Room for one that is not here yet, and for each other account that was here lately and holds nothing. For one that
   * holds something. Looks at those that wait, as `#next` does: those that were here otherwise are counted already.
   */
  #keptFree(asking: Account): number {
    this.#forgetLately(performance.now());
    let others = 1 + this.#latelyWithout;
    for (const account of this.#asking) if (account.held === 0 && !this.#lately.has(account)) others++;
    const forOthers = Math.min(others * this.#options.unit, this.#options.total / 2);
    return Math.max(forOthers, this.#keptForShort(asking));
  }

  #grant(account: Account, overtakes: boolean): void {
    const first = account.waiting.shift();
    if (first === undefined) return;
    this.#leftQueue(account);
    const { amount, revoke } = first;
    const since = performance.now();
    const held: Held = {
      amount,
      revoke,
      since,
      activeMs: 0,
      activeAt: since,
      isResting: false,
      isAsShort: overtakes || this.#taken + amount > this.#options.total - this.#keptFromLong,
      known: { isShort: areUsesShort(account, since), isReliable: isReliable(account) },
      isBeyond: false,
      asShort: 0,
      isRevoked: false,
      isReturned: false,
      isKept: false,
      isLent: false,
    };
    account.grants.add(held);
    this.#countAsShort(held);
    this.#count(account, amount);
    account.turn = this.#turns++;
    this.#holding.delete(account);
    this.#holding.add(account);
    first.settle(held);
  }

  /** One of its requests does not wait any more. */
  #leftQueue(account: Account): void {
    this.#countWaiting(-1);
    if (account.waiting.length === 0) this.#asking.delete(account);
  }

  #remove(account: Account, asked: Ask): void {
    const at = account.waiting.indexOf(asked);
    if (at === -1) return;
    account.waiting.splice(at, 1);
    this.#leftQueue(account);
    // Once for all that leave together: each time all that wait are looked at.
    this.#leaving ??= setImmediate(() => {
      this.#leaving = undefined;
      this.serve();
    });
  }

  /** Among equals the asking one, then the one that was served first. Looks at those that wait, where too many do. */
  #withMostWaiting(asking: Account): Account {
    let most = asking;
    for (const account of this.#asking) {
      const more = account.waiting.length - most.waiting.length;
      if (more > 0 || (more === 0 && most !== asking && account.turn < most.turn)) most = account;
    }
    return most;
  }

  /** Not the only one of its account, as a rule: one with nothing else in the queue has a place. */
  #refuseOne(asking: Account): void {
    const most = this.#withMostWaiting(asking);
    const { crowdOf, mostWaiting } = this.#options;
    if (most.waiting.length > 1) this.#refuseNewest(most);
    else if (crowdOf !== undefined) this.#refuseOfCrowd(crowdOf, this.#waiting > 2 * mostWaiting);
  }

  /** The newest of the largest crowd; where there is none and it must be one, whoever waits for longest. */
  #refuseOfCrowd(crowdOf: (name: string) => string, mustBe: boolean): void {
    const crowds = Map.groupBy(this.#asking, ({ name }) => crowdOf(name));
    const largest = [...crowds.values()].reduce((one, other) => (other.length > one.length ? other : one), []);
    const refused = largest.length > 1 ? largest.at(-1) : mustBe ? largest[0] : undefined;
    if (refused !== undefined) this.#refuseNewest(refused);
  }

  #refuseNewest(account: Account): void {
    const newest = account.waiting.pop();
    this.#leftQueue(account);
    newest?.refuse(this.#crowded());
  }

  #crowded(): Crowded {
    const seconds = (this.#waiting * this.#meanHeldMs) / this.#options.total / 1_000;
    return new Crowded(Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(seconds))));
  }

  get #tickMs(): number {
    return this.#options.patienceMs === Infinity ? MAX_TICK_MS : this.#options.revokeEveryMs;
  }

  #tick(): void {
    this.serve();
    this.#revokeLate();
  }

  /** At most one at a time. */
  #revokeLate(): void {
    const now = performance.now();
    if (now - this.#revokedAt < this.#options.revokeEveryMs * TIMER_SLACK || this.#revokeForShort()) return;
    const next = this.#next();
    const first = next?.waiting[0];
    if (next === undefined || first === undefined) return;
    const isImpatient = now - first.since >= this.#options.patienceMs;
    if (isImpatient && !this.#isRoomComing(next, first.amount)) this.#revokeFor(next, first.amount);
  }

  /**
   * One that turned out long in what is kept for short uses. False if there is none, or no need. Looks at those that
   * hold something, where one with short uses waits in vain.
   */
  #revokeForShort(): boolean {
    if (this.#options.patienceMs === Infinity) return false;
    const next = this.#next((account) => this.#isShort(account));
    const amount = next?.waiting[0]?.amount ?? 0;
    if (next === undefined || next.held > 0 || this.#isRoomComing(next, amount)) return false;
    for (const account of this.#holding) {
      if (account === next) continue;
      const late = [...account.grants].find((held) => held.isAsShort && activeMsOf(held) > SHORT_MS && mayRevoke(held));
      if (late === undefined) continue;
      if (isReliable(account)) this.#countShortUses(account, -MANY_SHORT);
      else account.longUntil = performance.now() + FORGOTTEN_MS;
      this.#revoke(late);
      return true;
    }
    return false;
  }

  #revoke(held: Held): void {
    held.isRevoked = true;
    this.#revoked.add(held);
    this.#revokedAt = performance.now();
    held.revoke();
  }

  #isRoomComing(waiting: Account, amount: number): boolean {
    const free = (this.#options.mayGrant?.() ?? true) ? this.#freeFor(waiting) : 0;
    const coming = [...this.#revoked].filter(({ isResting }) => !isResting);
    return coming.reduce((sum, held) => sum + held.amount, free) >= amount;
  }

  /** The oldest of whoever holds most. Looks at those that hold something, where the next has waited for too long. */
  #revokeFor(waiting: Account, amount: number): void {
    let most: { readonly account: Account; readonly oldest: Held } | undefined;
    for (const account of this.#holding) {
      if (account === waiting || (most !== undefined && this.#isBefore(account, most.account))) continue;
      const oldest = [...account.grants].find((held) => this.#isRevocable(account, held, waiting, amount));
      if (oldest !== undefined) most = { account, oldest };
    }
    if (most !== undefined) this.#revoke(most.oldest);
  }

  /** Not to give one account what makes another poorer than it, unless the one holds nothing at all. */
  #isRevocable(account: Account, held: Held, waiting: Account, amount: number): boolean {
    const isOld = performance.now() - held.since >= this.#options.patienceMs;
    const isFair = waiting.held === 0 || account.held - held.amount >= waiting.held + amount;
    return isOld && isFair && mayRevoke(held);
  }
}

const isReliable = ({ shortUses }: Account): boolean => shortUses >= MANY_SHORT;

const areUsesShort = ({ usualMs, longUntil }: Account, now: number): boolean => usualMs <= SHORT_MS && longUntil <= now;

const mayRevoke = ({ isRevoked, isResting, isKept }: Held): boolean => !isRevoked && !isResting && !isKept;

const activeMsOf = ({ activeMs, activeAt, isResting, isLent }: Held): number =>
  activeMs + (isResting || isLent ? 0 : performance.now() - activeAt);

export interface TakeOptions {
  /** Whose share it is; default the scope's account. */
  readonly account?: string;
  /** The longest to wait. */
  readonly withinMs?: number;
}

function inTime<T>(granted: Promise<T>, withinMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new NotInTime(Math.ceil(withinMs / 1_000))), withinMs);
    granted.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

class OpenScope {
  readonly #left = new AbortController();
  readonly #returns: (() => void)[] = [];
  readonly #account: string;
  /** Aborted when the scope is left or its signal is; with Preempted when one of its grants is revoked. */
  readonly over: AbortSignal;

  constructor(account: string, signal: AbortSignal | undefined) {
    this.#account = account;
    this.over = this.#left.signal;
    if (signal === undefined) return;
    const leave = (): void => this.#left.abort(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    this.#returns.push(() => signal.removeEventListener("abort", leave));
  }

  /** Resolves when it is granted. Rejects with Crowded, after `withinMs` NotInTime, or the reason of `over`. */
  async take(share: FairShare, amount = 1, options: TakeOptions = {}): Promise<Grant> {
    const { account = this.#account, withinMs } = options;
    const granted = share[ask](account, amount, this.over, () => this.#left.abort(new Preempted()));
    const held = await (withinMs === undefined ? granted : inTime(granted, withinMs)).catch((error: unknown) => {
      granted.then(
        (late) => share[giveBack](account, late),
        () => undefined,
      );
      throw error;
    });
    if (this.over.aborted) {
      share[giveBack](account, held);
      throw this.over.reason as Error;
    }
    this.#returns.push(() => share[giveBack](account, held));
    return {
      rest: () => share[restOrWake](account, held, true),
      wake: () => share[restOrWake](account, held, false),
      keep: (yields) => share[keep](account, held, yields !== undefined),
      use: () => share[use](held),
      shrink: (to) => share[shrink](account, held, to),
      lend: (letGo) => share[lend](account, held, letGo),
    };
  }

  leave(): void {
    this.#left.abort(OVER);
    for (const giveBackOne of this.#returns.splice(0)) giveBackOne();
  }
}

export type Scope = Pick<OpenScope, "take" | "over">;

/** Runs `work` in a scope for the account; what it took is returned when it ends, however it ends. */
export async function inScope<T>(
  account: string,
  signal: AbortSignal | undefined,
  work: (scope: Scope) => Promise<T>,
): Promise<T> {
  const scope = new OpenScope(account, signal);
  try {
    return await work(scope);
  } finally {
    scope.leave();
  }
}
