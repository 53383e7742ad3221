/**
 * Takes up what nobody brings to its end: transactions without a monitor, and writes that wait for another transaction
 * because theirs failed as a whole or was displaced. One write of a shared transaction may have used more gas than in
 * its simulation and left too little for the others, so each is sent in a transaction of its own, with its id and
 * reservation. No account is charged for the failed transaction.
 */
import type { Logger } from "pino";
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle } from "../payers/fees";
import type { Lanes } from "../payers/lanes";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";
import { simulateForward } from "./forwards";
import { cameToNothing } from "./outcomes";
import type { OutcomeFeed } from "./outcomeWatch";
import type { CarriedWrite, Carrier } from "./rows";
import type { Simulation } from "./simulation";
import type { TransactionMonitor } from "./transactionMonitor";
import type { Transactions } from "./transactions";

export interface RecoveryOptions {
  readonly rpc: RpcClient;
  readonly transactions: Transactions;
  readonly lanes: Lanes;
  readonly fees: FeeOracle;
  readonly monitor: TransactionMonitor;
  readonly simulation: Simulation;
  readonly outcomes: OutcomeFeed;
  readonly forwarder: () => Promise<Address>;
  readonly log: Logger;
}

type Verdict = { readonly gasLimit: bigint } | { readonly error: SubmissionFailure };

export class Recovery {
  readonly #options: RecoveryOptions;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  async takeOver(): Promise<void> {
    const { transactions, monitor } = this.#options;
    for (const transaction of await transactions.takeOver(monitor.watchedIds)) monitor.watch(transaction);
  }

  /** Sends waiting writes as far as the lanes have capacity; the others are left to the next call. */
  async sendWaiting(): Promise<void> {
    const { transactions } = this.#options;
    await transactions.releaseWrites();
    for (const write of await transactions.waiting()) if (!(await this.#sendAlone(write))) return;
  }

  /** False when no lane has capacity or can pay at the moment. */
  async #sendAlone(write: CarriedWrite): Promise<boolean> {
    const { transactions, lanes, fees, monitor, outcomes, log } = this.#options;
    const verdict = await this.#tryAlone(write);
    if ("error" in verdict) {
      const ended = await transactions.failWaiting(write, verdict.error);
      if (ended !== undefined) outcomes.publishWrite(ended);
      return true;
    }
    const { maxFeePerGas } = await fees.now();
    const lane = await lanes.tryEnter(verdict.gasLimit * maxFeePerGas).catch(noneIfUnaffordable);
    if (lane === undefined) return false;
    let carrier: Carrier | undefined;
    try {
      carrier = await transactions.carryAlone(write, { payer: lane.payer, gasLimit: verdict.gasLimit });
    } finally {
      if (carrier === undefined) lanes.leave(lane.payer);
      else lanes.begin(lane.payer);
    }
    if (carrier === undefined) return true;
    log.warn({ submissionId: write.id, transactionId: carrier.transaction.id }, "a write is sent again, alone");
    monitor.watch(carrier.transaction, carrier.writes);
    return true;
  }

  /** Simulates the write alone. Throws when chain or service is temporarily unavailable. */
  async #tryAlone(write: CarriedWrite): Promise<Verdict> {
    const { simulation, lanes } = this.#options;
    const { address } = await lanes.anyRegistered();
    try {
      return { gasLimit: simulation.limitAlone(await this.#gasOf(write, address)) };
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.code === "no_payer_available") return { error: cameToNothing(write, "failed together") };
      if (error.retryable) throw error;
      return { error: { code: error.code, detail: error.detail, facts: { ...error.facts } } };
    }
  }

  #gasOf({ calldata, signer, transaction }: CarriedWrite, payer: Address): Promise<bigint> {
    const { rpc, simulation, forwarder } = this.#options;
    const minBlock = (): Promise<number> => Promise.resolve(transaction.block_number ?? 0);
    if (signer === null) return simulation.alone(calldata ?? "0x", payer, minBlock);
    return simulateForward(decodeForward(calldata ?? "0x"), { rpc, forwarder, minBlock, payer });
  }
}

function noneIfUnaffordable(error: unknown): undefined {
  if (error instanceof KeywrightError && error.code === "no_payer_available") return undefined;
  throw error;
}
