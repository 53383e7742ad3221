/** Options and tuning of the chain module. */
import type { Logger } from "pino";
import type { Address } from "../../protocol/ids";
import type { Db } from "../store/database";
import type { Connect, ExchangeFacts } from "./rpc/client";
import type { ExecutorPort, SubmissionHooks } from "./types";

export interface ChainTuning {
  /** Maximum duration of one exchange with an endpoint. */
  readonly rpcTimeoutMs: number;
  /** Maximum duration of a read or simulation over all endpoints. */
  readonly rpcDeadlineMs: number;
  /** Maximum time `submit` waits for an outcome before it answers `submission_pending`. */
  readonly answerWithinMs: number;
  /** Shortest and longest interval between polls of the head. */
  readonly fastestPollMs: number;
  readonly slowestPollMs: number;
  /** An endpoint whose head has not moved for so long, while another's has, is asked after the others. */
  readonly stillForMs: number;
  /** Interval at which a sent transaction's receipt is looked up. */
  readonly lookEveryMs: number;
  /** A known transaction that is next in its lane and not mined after this time is resent with higher fees. */
  readonly stuckAfterMs: number;
  /** A write that could not be signed for this long is abandoned. */
  readonly unsignedForAtMostMs: number;
  /** The highest fee per gas offered, in wei; twice that to abandon a nonce. */
  readonly maxFeeCapWei: bigint;
  /** Maximum number of a payer's pending transactions. */
  readonly maxInFlightPerLane: number;
  /** Writes waiting for their account's turn, per account and in total; further ones are refused with `queue_full`. */
  readonly maxWaitingPerAccount: number;
  readonly maxWaiting: number;
  /** Interval of lane maintenance. */
  readonly maintainEveryMs: number;
  /** Interval of the search for submissions without a monitor. */
  readonly sweepEveryMs: number;
  /** The tip when no endpoint suggests one, in wei per gas. */
  readonly defaultTipWei: bigint;
  /** Gas limit of any transaction: the protocol's maximum (EIP-7825: 2^24). */
  readonly maxTransactionGas: bigint;
  /**
   * A payer below the first amount is topped up to the second, in wei. Both are raised to the current cost of
   * `topUpGas`, and to what a write requested.
   */
  readonly topUpBelowWei: bigint;
  readonly topUpToWei: bigint;
  /** Gas a payer should be able to pay for at any time. */
  readonly topUpGas: bigint;
  /** Maximum amount of one top-up: the limit of what the executor signs (its MAX_TOP_UP_WEI). */
  readonly maxTopUpWei: bigint;
  /** Depth from which a block is treated as final: `confirmed`. */
  readonly finalityDepth: number;
}

const GWEI = 10n ** 9n;
const MILLIETHER = 10n ** 15n;

export const CHAIN_TUNING: ChainTuning = {
  rpcTimeoutMs: 5_000,
  rpcDeadlineMs: 10_000,
  answerWithinMs: 30_000,
  fastestPollMs: 25,
  slowestPollMs: 1_000,
  stillForMs: 30_000,
  lookEveryMs: 2_000,
  stuckAfterMs: 30_000,
  unsignedForAtMostMs: 600_000,
  maxFeeCapWei: 500n * GWEI,
  maxInFlightPerLane: 4,
  maxWaitingPerAccount: 64,
  maxWaiting: 2_000,
  maintainEveryMs: 2_000,
  sweepEveryMs: 1_000,
  defaultTipWei: GWEI,
  maxTransactionGas: 2n ** 24n,
  topUpBelowWei: 20n * MILLIETHER,
  topUpToWei: 50n * MILLIETHER,
  topUpGas: 5_000_000n,
  maxTopUpWei: 1_000n * MILLIETHER,
  finalityDepth: 64,
};

export interface ChainOptions {
  readonly db: Db;
  /** No other relayer uses this store: its own writes are all there are. Default false. */
  readonly storeIsOurs?: boolean | undefined;
  /** The id of the store's `Instance`; marks what this process holds. */
  readonly instanceId: string;
  readonly executor: ExecutorPort;
  readonly hooks: SubmissionHooks;
  readonly log: Logger;
  readonly rpcUrls: readonly string[];
  readonly chainId: bigint;
  readonly contractAddress: Address;
  /** Block of the contract's deployment, where its events begin. Default 0. */
  readonly deploymentBlock?: number | undefined;
  /** Lanes 1 to this number are used, besides the admin payer. */
  readonly payerCount: number;
  /** Called for each exchange with an endpoint. */
  readonly onExchange?: ((facts: ExchangeFacts) => void) | undefined;
  /** Connects to an endpoint; default: JSON-RPC over HTTP. */
  readonly connect?: Connect | undefined;
  /** Depth a write must reach before it is answered; 1 = mined. */
  readonly confirmationsBeforeAnswer?: number | undefined;
  readonly tuning?: Partial<ChainTuning> | undefined;
}
