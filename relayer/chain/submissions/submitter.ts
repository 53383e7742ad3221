/** Takes one write from the request to its outcome. */
import { KeywrightError } from "../../../protocol/errors";
import type { Hash32 } from "../../../protocol/ids";
import type { ContractWrite } from "../../../protocol/executor";
import { encodeWrite } from "../abi/contract";
import type { Receipt } from "../abi/receipts";
import type { Lanes } from "../payers/lanes";
import type { Head } from "../rpc/head";
import type { RpcClient } from "../rpc/client";
import type { ChainTuning } from "../settings";
import type { SubmitAnswer, SubmitRequest } from "../types";
import { busyAccount, type AccountQueue } from "./accountQueue";
import type { Batcher } from "./batcher";
import type { OutcomeFeed } from "./outcomeFeed";
import { OutcomeWatch } from "./outcomeWatch";
import { RepeatedKey, type SubmissionRecords } from "./records";
import { newSubmissionId, type SubmissionRow } from "./rows";
import type { Simulation } from "./simulation";
import { hasOutcome } from "./states";
import { viewOf } from "./view";

export interface SubmitterOptions {
  readonly rpc: RpcClient;
  readonly records: SubmissionRecords;
  readonly batcher: Batcher;
  readonly simulation: Simulation;
  readonly outcomes: OutcomeFeed;
  readonly head: Head;
  readonly lanes: Lanes;
  readonly queue: AccountQueue;
  readonly confirmationsBeforeAnswer: number;
  readonly tuning: ChainTuning;
}

export class Submitter {
  readonly #watch: OutcomeWatch;
  #stopping = false;
  readonly #options: SubmitterOptions;

  constructor(options: SubmitterOptions) {
    this.#options = options;
    this.#watch = new OutcomeWatch(options);
  }

  stop(): void {
    this.#stopping = true;
  }

  /** Simulates the write with a payer as the sender. A revert throws the named error. */
  async simulate(write: ContractWrite): Promise<void> {
    const { simulation, lanes } = this.#options;
    await simulation.alone(encodeWrite(write), (await lanes.anyRegistered()).address);
  }

  async submit(request: SubmitRequest): Promise<SubmitAnswer> {
    if (this.#stopping)
      throw new KeywrightError(
        "shutting_down",
        "The service is shutting down; nothing was sent or charged.",
        {},
        { retryAfterSeconds: 5 },
      );
    const deadline = Date.now() + (request.waitMs ?? this.#options.tuning.answerWithinMs);
    const earlier = await this.#earlier(request);
    if (earlier !== undefined) return this.#answer(request, await this.#outcome(earlier, deadline), true);
    try {
      await request.admit?.();
      return await this.#options.queue.inTurn(request.accountId, deadline, busyAccount, async () => {
        const row = await this.#options.batcher.add(request, newSubmissionId(), deadline);
        return this.#answer(request, await this.#outcome(row, deadline), false);
      });
    } catch (error) {
      // The same forward request sent twice concurrently: the second finds its nonce used by the first.
      const repeated = error instanceof RepeatedKey || "forward" in request ? await this.#earlier(request) : undefined;
      if (repeated === undefined) throw error;
      return this.#answer(request, await this.#outcome(repeated, deadline), true);
    }
  }

  async #earlier({ idempotencyKey }: SubmitRequest): Promise<SubmissionRow | undefined> {
    return idempotencyKey === undefined ? undefined : this.#options.records.byIdempotencyKey(idempotencyKey);
  }

  /** The row once it has an outcome at the configured depth. Throws `submission_pending`. */
  async #outcome(begun: SubmissionRow, deadline: number): Promise<SubmissionRow> {
    let row = begun;
    while (!(hasOutcome(row.state) && (await this.#isDeepEnough(row, deadline)))) {
      if (Date.now() >= deadline) throw pending((await this.#options.records.load(row.id)) ?? row);
      row = (await this.#watch.next(row.id, deadline)) ?? row;
    }
    return row;
  }

  /** Whether the block is at the configured depth and still contains the transaction. */
  async #isDeepEnough(row: SubmissionRow, deadline: number): Promise<boolean> {
    const { confirmationsBeforeAnswer, head, rpc } = this.#options;
    if (row.block_number === null || confirmationsBeforeAnswer <= 1) return true;
    while (head.number < row.block_number + confirmationsBeforeAnswer - 1) {
      if (Date.now() >= deadline) throw pending(row);
      await head.next(Math.max(1, Math.min(1_000, deadline - Date.now())));
    }
    const receipt = await rpc.call<Receipt | null>("eth_getTransactionReceipt", [row.transaction_hash]);
    return receipt?.blockHash === row.block_hash;
  }

  #answer({ act }: SubmitRequest, row: SubmissionRow, replayed: boolean): SubmitAnswer {
    const { id, state, transactionHash, blockNumber, result, error } = viewOf(row);
    if (error !== undefined) {
      if (row.charged) act?.happened();
      else act?.cameToNothing();
      throw new KeywrightError(error.code, error.detail, { ...error.facts, submission_id: id });
    }
    if (transactionHash === undefined || blockNumber === undefined)
      throw new Error(`submission ${id} is ${state} without a transaction`);
    return {
      submissionId: id,
      transactionHash: transactionHash as Hash32,
      blockNumber,
      result: result ?? {},
      replayed,
    };
  }
}

function pending(row: SubmissionRow): KeywrightError {
  const facts = {
    submission_id: row.id,
    ...(row.transaction_hash === null ? {} : { transaction_hash: row.transaction_hash }),
  };
  return new KeywrightError(
    "submission_pending",
    "The write is still under way; ask for its submission later.",
    facts,
    { retryAfterSeconds: 5 },
  );
}
