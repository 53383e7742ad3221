/**
 * Spends from budgets, exactly: what an action may sign in an hour or a day is leased from the contract before it is
 * signed. The relayer has leases sent and may withhold, repeat or replace them; whether one is on the chain, and where,
 * the keyholder reads itself.
 */
import { LRUCache } from "lru-cache";
import type { Budget } from "../../protocol/budgets";
import type { AccountId } from "../../protocol/ids";
import { OpRefusal } from "../ops/refusal";
import { Counter, type BudgetChain, type Carrier, type Payer, type Spend } from "./counter";

/** Budgets that one account has in memory. What is dropped was leased for nothing; never the other way round. */
const MOST_PER_ACCOUNT = 256;
const MOST_ACCOUNTS = 4_096;

export class Budgets {
  readonly #accounts = new LRUCache<AccountId, LRUCache<string, Counter>>({ max: MOST_ACCOUNTS });
  readonly #chain: BudgetChain;
  readonly #carrier: Carrier;

  constructor(chain: BudgetChain, carrier: Carrier) {
    this.#chain = chain;
    this.#carrier = carrier;
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
    const counters = this.#accounts.get(account) ?? new LRUCache<string, Counter>({ max: MOST_PER_ACCOUNT });
    this.#accounts.set(account, counters);
    const key = `${action} ${window} ${name}`;
    const counter = counters.get(key) ?? new Counter(budget, this.#chain, this.#carrier);
    counters.set(key, counter);
    return counter;
  }
}
