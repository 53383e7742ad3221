/** Dependencies of the routes, independent of store, Koa and environment. */
import type { KnownBudget } from "../../protocol/budgets";
import type { RunErrorCode } from "../../protocol/errors";
import type { ExecutorAnswer } from "../../protocol/executor";
import type { AccountId, ActionHash, Cid } from "../../protocol/ids";
import type { Prices, RateLimits } from "../../protocol/limits";
import type { TypedDataDomain } from "../../protocol/typedData";
import type { Chain, Page, PageRequest } from "../chain/types";
import type { Credits } from "../credits";
import type { Executor } from "../executor/client";
import type { Webhooks } from "../webhooks";
import type { Triggers } from "../triggers";
import type { Logger } from "../../protocol/log";

/** CIDs seen so far, so that lists can show them beside their hashes. */
export interface CidLookup {
  remember(cids: readonly Cid[]): Promise<void>;
  lookUp(hashes: readonly ActionHash[]): Promise<ReadonlyMap<ActionHash, Cid>>;
}

/** Which budgets an account's actions have spent of. */
export interface BudgetList {
  of(account: AccountId, page: PageRequest): Promise<Page<KnownBudget>>;
}

export type ExecutorInfo = ExecutorAnswer<"info">;

/** What the metrics count of a run that the executor accepted. */
export interface RunFacts {
  /** The code of the run's error. */
  readonly error: RunErrorCode | undefined;
  readonly seconds: number;
  /** The service failed, so the run was free. */
  readonly serviceFault: boolean;
}

export interface RouteDeps {
  readonly chain: Chain;
  readonly credits: Credits;
  readonly executor: Executor;
  readonly webhooks: Webhooks;
  readonly triggers: Triggers;
  readonly budgets: BudgetList;
  /** The executor's info, at most a few seconds old. */
  readonly executorInfo: () => Promise<ExecutorInfo>;
  readonly cids: CidLookup;
  /** The CID of code; large code is hashed in a worker thread. Error: `queue_full`. */
  readonly cidOf: (code: string) => Promise<Cid>;
  readonly onRan: (facts: RunFacts) => void;
  readonly log: Logger;
  readonly serviceName: string;
  readonly typedDataDomain: TypedDataDomain;
  readonly prices: Prices;
  readonly rateLimits: RateLimits;
}
