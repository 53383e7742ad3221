/** What the chain room is given, and the figures it works with. */
import type { Logger } from "pino";
import type { Address } from "../../protocol/ids";
import type { Db } from "../store/database";
import type { ExecutorPort, SubmissionHooks } from "./types";

export interface ChainTuning {
  /** Longest one exchange with an endpoint may take. */
  readonly rpcTimeoutMs: number;
  /** Longest a read or simulation may take over all endpoints. */
  readonly rpcDeadlineMs: number;
  /** Longest `submit` waits for an outcome before it answers `submission_pending`. */
  readonly answerWithinMs: number;
  /** Heads are asked for this often at most, and at least. */
  readonly fastestPollMs: number;
  readonly slowestPollMs: number;
  /** A sent transaction without a receipt is looked for this often. */
  readonly lookEveryMs: number;
  /** A known transaction that is next in its lane and still not mined after this time gets higher fees. */
  readonly stuckAfterMs: number;
  /** A nonce that every endpoint calls used, by nobody of ours, is believed to be so after this time. */
  readonly nonceLostAfterMs: number;
  /** A write nobody could sign for this long is given up. */
  readonly unsignedForAtMostMs: number;
  /** No fee per gas above this is ever offered, in wei. */
  readonly maxFeeCapWei: bigint;
  /** Transactions of a payer that may be on their way at once. */
  readonly maxInFlightPerLane: number;
  /** Writes waiting for their account's turn, per account and in all; more are refused with `queue_full`. */
  readonly maxWaitingPerAccount: number;
  readonly maxWaiting: number;
  /** Lanes are looked after this often. */
  readonly maintainEveryMs: number;
  /** Submissions without a monitor are looked for this often. */
  readonly sweepEveryMs: number;
  /** A tip that is offered where the endpoints name none, in wei per gas. */
  readonly defaultTipWei: bigint;
  /** No transaction is given more gas than this: what the protocol allows one (EIP-7825: 2^24). */
  readonly maxTransactionGas: bigint;
  /** A payer below the first figure is topped up to the second, in wei. Both are raised to what `topUpGas` costs at present, and to what a write wants. */
  readonly topUpBelowWei: bigint;
  readonly topUpToWei: bigint;
  /** So much gas a payer should be able to pay for at any time. */
  readonly topUpGas: bigint;
  /** The most one top-up moves: what the executor signs at most (its MAX_TOP_UP_WEI). */
  readonly maxTopUpWei: bigint;
  /** From this depth on a block is taken as final: `confirmed`. */
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
  lookEveryMs: 2_000,
  stuckAfterMs: 30_000,
  nonceLostAfterMs: 120_000,
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
  /** No other relayer can be on this store: what this one knows of its own writes is all there is to know. Default false. */
  readonly storeIsOurs?: boolean | undefined;
  /** Of the store's `Instance`: what this process holds carries it. */
  readonly instanceId: string;
  readonly executor: ExecutorPort;
  readonly hooks: SubmissionHooks;
  readonly log: Logger;
  readonly rpcUrls: readonly string[];
  readonly chainId: bigint;
  readonly contractAddress: Address;
  /** Block of the contract's deployment: where its events begin. Default 0. */
  readonly deploymentBlock?: number | undefined;
  /** Lanes 1 to this many are used; the admin payer besides. */
  readonly payerCount: number;
  /** How deep a write has to be before it is answered; 1 = mined. */
  readonly confirmationsBeforeAnswer?: number | undefined;
  readonly tuning?: Partial<ChainTuning> | undefined;
}
