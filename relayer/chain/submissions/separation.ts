/**
 * Resends the writes of a batch whose transaction failed as a whole because one write used more gas than in its
 * simulation and left too little for the others. Each is sent in a transaction of its own, with its id and reservation,
 * so that it can no longer fail because of another. No account is charged for the failed transaction.
 * A payer's write is resent only once the failed transaction is final: a reorg could drop that transaction and let it
 * succeed later, and the write would be executed twice. A forward request is resent at once: its forwarder nonce
 * prevents a second execution, and its deadline is short.
 */
import type { Logger } from "pino";
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle } from "../payers/fees";
import type { Lanes } from "../payers/lanes";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";
import { simulateForward } from "./forwardSimulation";
import { cameToNothing } from "./outcomes";
import type { OutcomeFeed } from "./outcomeFeed";
import type { SubmissionRecords } from "./records";
import { hasOutcome } from "./states";
import type { SubmissionRow } from "./rows";
import type { FailedBatch } from "./separatedRows";
import type { Simulation } from "./simulation";
import type { TransactionMonitor } from "./transactionMonitor";

export interface SeparationOptions {
  readonly rpc: RpcClient;
  readonly records: SubmissionRecords;
  readonly lanes: Lanes;
  readonly fees: FeeOracle;
  readonly monitor: TransactionMonitor;
  readonly simulation: Simulation;
  readonly outcomes: OutcomeFeed;
  readonly forwarder: () => Promise<Address>;
  readonly finalityDepth: number;
  readonly log: Logger;
}

type Verdict = { readonly gasLimit: bigint } | { readonly error: SubmissionFailure };

export class Separation {
  readonly #options: SeparationOptions;

  constructor(options: SeparationOptions) {
    this.#options = options;
  }

  /** Resends members of failed batches as far as the lanes have capacity; the others are left to the next call. */
  async run(): Promise<void> {
    const { records, finalityDepth } = this.#options;
    for (const batch of await records.failedBatches(finalityDepth))
      if (await this.#isFinal(batch)) await this.#separate(batch);
  }

  /** Asks a node that has reached the final depth: the follower may have skipped this block without reading it. */
  async #isFinal({ block, blockHash, ofForwards }: FailedBatch): Promise<boolean> {
    if (ofForwards) return true;
    const { rpc, finalityDepth } = this.#options;
    const [found] = await rpc.callBelow(block + finalityDepth, [
      { method: "eth_getBlockByNumber", params: [`0x${block.toString(16)}`, false] },
    ]);
    return (found as { readonly hash: string } | null)?.hash === blockHash;
  }

  async #separate(batch: FailedBatch): Promise<void> {
    const members = await this.#options.records.members(batch.id);
    for (const member of members.filter(({ state }) => !hasOutcome(state)))
      if (!(await this.#sendAlone(batch, member))) return;
  }

  /** False when no lane has capacity or can pay at the moment. */
  async #sendAlone(batch: FailedBatch, member: SubmissionRow): Promise<boolean> {
    const { records, lanes, fees, monitor, outcomes, log } = this.#options;
    const verdict = await this.#tryAlone(member, batch.block);
    if ("error" in verdict) {
      const ended = await records.failSeparated(batch, member, verdict.error);
      if (ended !== undefined) outcomes.publish(ended);
      return true;
    }
    const { maxFeePerGas } = await fees.now();
    const lane = await lanes.tryEnter(verdict.gasLimit * maxFeePerGas).catch(noneIfUnaffordable);
    if (lane === undefined) return false;
    let row: SubmissionRow | undefined;
    try {
      row = await records.putBack(batch, { id: member.id, payer: lane.payer, gasLimit: verdict.gasLimit });
    } finally {
      if (row === undefined) lanes.leave(lane.payer);
      else lanes.begin(lane.payer);
    }
    if (row === undefined) return true;
    log.warn({ submissionId: row.id, batch: batch.id }, "a write of a failed batch is sent alone");
    monitor.watch(row);
    return true;
  }

  /** Simulates the member alone. Throws when chain or service is temporarily unavailable. */
  async #tryAlone(member: SubmissionRow, block: number): Promise<Verdict> {
    const { simulation, lanes } = this.#options;
    const { address } = await lanes.anyRegistered();
    try {
      return { gasLimit: simulation.limitAlone(await this.#gasOf(member, address, block)) };
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      if (error.code === "no_payer_available") return { error: cameToNothing(member, "failed together") };
      if (error.retryable) throw error;
      return { error: { code: error.code, detail: error.detail, facts: { ...error.facts } } };
    }
  }

  #gasOf({ calldata, signer }: SubmissionRow, payer: Address, block: number): Promise<bigint> {
    const { rpc, simulation, forwarder } = this.#options;
    const minBlock = (): Promise<number> => Promise.resolve(block);
    if (signer === null) return simulation.alone(calldata ?? "0x", payer, minBlock);
    return simulateForward(decodeForward(calldata ?? "0x"), { rpc, forwarder, minBlock, payer });
  }
}

function noneIfUnaffordable(error: unknown): undefined {
  if (error instanceof KeywrightError && error.code === "no_payer_available") return undefined;
  throw error;
}
