/**
 * Spends from budgets, exactly: what an action may sign in an hour or a day is leased from the contract before it is
 * signed. The relayer has leases sent and may withhold, repeat or replace them; whether one is on the chain, and where,
 * the keyholder reads itself.
 */
import type { Budget } from "../../protocol/budgets";
import type { AccountId } from "../../protocol/ids";
import { OpRefusal } from "../ops/refusal";
import { Counter, type BudgetChain, type Carrier, type Payer, type Spend } from "./counter";

/**
 * Budgets in memory: of each account, and of all. What is dropped was leased for nothing; never the other way round.
 * Those of windows that are over go first, then the oldest of the account that has most,
 * and among accounts that have as many, of the one that has not spent for longest.
 */
const MAX_PER_ACCOUNT = 256;
const MOST = 65_536;
/** Looking for windows that are over visits all. */
const SWEPT_EACH_SECONDS = 60;

/** By window, name and action; last used last. */
type Counters = Map<string, Counter>;

export class Budgets {
  readonly #accounts = new Map<AccountId, Counters>();
  #count = 0;
  #sweptAt = -Infinity;
  readonly #chain: BudgetChain;
  readonly #carrier: Carrier;
  readonly #most: number;
  readonly #nowSeconds: () => number;

  constructor(chain: BudgetChain, carrier: Carrier, most = MOST, nowSeconds = () => Date.now() / 1_000) {
    this.#chain = chain;
    this.#carrier = carrier;
    this.#most = most;
    this.#nowSeconds = nowSeconds;
  }

  /**
   * Counts `amount` against the limit in the window of the chain's time. Returns what is left of the limit.
   * @throws OpRefusal `budget_exceeded`; `budget_unavailable` when nothing can be leased now. KeywrightError
   * `chain_unavailable`.
   */
  spend(budget: Budget, payer: Payer, spend: Spend): Promise<bigint> {
    if (spend.amount > spend.limit)
      throw new OpRefusal(
        "budget_exceeded",
        `${spend.amount} is more than the limit of ${budget.name}, ${spend.limit}`,
      );
    return this.#counterOf(budget).spend(payer, spend);
  }

  #counterOf(budget: Budget): Counter {
    const { account, action, name, window } = budget;
    const counters: Counters = this.#accounts.get(account) ?? new Map<string, Counter>();
    this.#accounts.delete(account);
    this.#accounts.set(account, counters);
    const key = `${action} ${window} ${name}`;
    const known = counters.get(key);
    const counter = known ?? new Counter(budget, this.#chain, this.#carrier);
    if (known === undefined) this.#count += 1;
    else counters.delete(key);
    counters.set(key, counter);
    if (counters.size > MAX_PER_ACCOUNT) this.#dropOldest(account, counters);
    if (this.#count > this.#most) this.#makeRoom();
    return counter;
  }

  #makeRoom(): void {
    const now = this.#nowSeconds();
    if (now - this.#sweptAt > SWEPT_EACH_SECONDS) {
      this.#sweptAt = now;
      for (const [account, counters] of this.#accounts)
        for (const [key, counter] of counters) if (counter.isOver(now)) this.#drop(account, counters, key);
    }
    if (this.#count <= this.#most) return;
    const [first] = this.#accounts;
    if (first === undefined) return;
    let largest = first;
    for (const one of this.#accounts) if (one[1].size > largest[1].size) largest = one;
    this.#dropOldest(...largest);
  }

  /** What holds nothing goes first: names are free, leases are not. The last is the one that was just asked for. */
  #dropOldest(account: AccountId, counters: Counters): void {
    const keys = [...counters.keys()];
    const key = keys.slice(0, -1).find((one) => counters.get(one)?.holdsNothing === true) ?? keys[0];
    if (key !== undefined) this.#drop(account, counters, key);
  }

  #drop(account: AccountId, counters: Counters, key: string): void {
    counters.delete(key);
    this.#count -= 1;
    if (counters.size === 0) this.#accounts.delete(account);
  }
}
