/** Dependencies of the routes, independent of store, Koa and environment. */
import type { RunErrorCode } from "../../protocol/errors";
import type { ExecutorAnswer } from "../../protocol/executor";
import type { ActionHash, Cid } from "../../protocol/ids";
import type { Prices, RateLimits } from "../../protocol/limits";
import type { TypedDataDomain } from "../../protocol/typedData";
import type { Chain } from "../chain/types";
import type { Credits } from "../credits";
import type { Executor } from "../executor/client";
import type { BudgetStore } from "../store/budgets";
import type { Webhooks } from "../webhooks";
import type { Triggers } from "../triggers";
import type { Logger } from "../../protocol/log";

/** CIDs seen so far, so that lists can show them beside their hashes. */
export interface CidLookup {
  remember(cids: readonly Cid[]): Promise<void>;
  lookUp(hashes: readonly ActionHash[]): Promise<ReadonlyMap<ActionHash, Cid>>;
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
  readonly budgets: Pick<BudgetStore, "of">;
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
