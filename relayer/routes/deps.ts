/** What the routes are given. They know no store, no koa and no environment. */
import type { RunErrorCode } from "../../protocol/errors";
import type { ExecutorAnswer } from "../../protocol/executor";
import type { ActionHash, Cid } from "../../protocol/ids";
import type { Prices, RateLimits } from "../../protocol/limits";
import type { TypedDataDomain } from "../../protocol/typedData";
import type { Chain } from "../chain/types";
import type { Credits } from "../credits/types";
import type { Executor } from "../executorClient";
import type { Logger } from "../logger";

/** CIDs seen so far, so that lists can show them beside their hash. */
export interface CidBook {
  remember(cids: readonly Cid[]): Promise<void>;
  lookUp(hashes: readonly ActionHash[]): Promise<ReadonlyMap<ActionHash, Cid>>;
}

export type ExecutorInfo = ExecutorAnswer<"info">;

/** What is counted of a run that the executor took on. */
export interface RunFacts {
  /** The code of the run's error. */
  readonly error: RunErrorCode | undefined;
  readonly seconds: number;
}

export interface RouteDeps {
  readonly chain: Chain;
  readonly credits: Credits;
  readonly executor: Executor;
  /** The executor's own account of itself, at most a few seconds old. */
  readonly executorInfo: () => Promise<ExecutorInfo>;
  readonly cids: CidBook;
  /** The CID of code; large code is hashed beside the thread that serves everybody. Error: `queue_full`. */
  readonly cidOf: (code: string) => Promise<Cid>;
  readonly onRan: (facts: RunFacts) => void;
  readonly log: Logger;
  readonly serviceName: string;
  readonly typedDataDomain: TypedDataDomain;
  readonly prices: Prices;
  readonly rateLimits: RateLimits;
}
