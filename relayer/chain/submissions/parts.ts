/** What the engine's parts share. */
import type { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle } from "../payers/fees";
import type { Lanes } from "../payers/lanes";
import type { RpcClient } from "../rpc/client";
import type { Head } from "../rpc/head";
import type { ChainTuning } from "../settings";
import type { ExecutorPort, SubmissionHooks } from "../types";
import type { AccountQueue } from "./accountQueue";
import type { Carrier } from "./rows";
import type { Simulation } from "./simulation";
import type { Transactions } from "./transactions";

/** Fates of transactions, which may come more than once, with the writes that they carried. */
export type OutcomeFeed = EventEmitter<{ transaction: [Carrier] }>;

export interface Parts {
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  readonly executor: ExecutorPort;
  readonly hooks: SubmissionHooks;
  readonly head: Head;
  readonly fees: FeeOracle;
  readonly lanes: Lanes;
  readonly queue: AccountQueue;
  readonly simulation: Simulation;
  readonly transactions: Transactions;
  readonly outcomes: OutcomeFeed;
  readonly log: Logger;
  readonly tuning: ChainTuning;
}
