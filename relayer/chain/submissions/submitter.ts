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
import { RepeatedKey, type Batcher } from "./batcher";
import { OutcomeWatch, type OutcomeFeed } from "./outcomeWatch";
import { newSubmissionId, viewOf, type CarriedWrite } from "./rows";
import type { Simulation } from "./simulation";
import { hasOutcome } from "./states";
import type { Transactions } from "./transactions";

export interface SubmitterOptions {
  readonly rpc: RpcClient;
  readonly transactions: Transactions;
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
        const write = await this.#options.batcher.add(request, newSubmissionId(), deadline);
        return this.#answer(request, await this.#outcome(write, deadline), false);
      });
    } catch (error) {
      // The same forward request sent twice concurrently: the second finds its nonce used by the first.
      const repeated = error instanceof RepeatedKey || "forward" in request ? await this.#earlier(request) : undefined;
      if (repeated === undefined) throw error;
      return this.#answer(request, await this.#outcome(repeated, deadline), true);
    }
  }

  async #earlier({ idempotencyKey }: SubmitRequest): Promise<CarriedWrite | undefined> {
    return idempotencyKey === undefined ? undefined : this.#options.transactions.byIdempotencyKey(idempotencyKey);
  }

  /** The write once it has an outcome at the configured depth. Throws `submission_pending`. */
  async #outcome(begun: CarriedWrite, deadline: number): Promise<CarriedWrite> {
    let write = begun;
    while (!(hasOutcome(write) && (await this.#isDeepEnough(write, deadline)))) {
      if (Date.now() >= deadline) throw pending((await this.#options.transactions.write(write.id)) ?? write);
      write = (await this.#watch.next(write.id, deadline)) ?? write;
    }
    return write;
  }

  /** Whether the block is at the configured depth and still contains the transaction. */
  async #isDeepEnough(write: CarriedWrite, deadline: number): Promise<boolean> {
    const { confirmationsBeforeAnswer, head, rpc } = this.#options;
    const { hash, block_number: block, block_hash: blockHash } = write.transaction;
    if (block === null || confirmationsBeforeAnswer <= 1) return true;
    while (head.number < block + confirmationsBeforeAnswer - 1) {
      if (Date.now() >= deadline) throw pending(write);
      await head.next(Math.max(1, Math.min(1_000, deadline - Date.now())));
    }
    const receipt = await rpc.call<Receipt | null>("eth_getTransactionReceipt", [hash]);
    return receipt?.blockHash === blockHash;
  }

  #answer({ operation }: SubmitRequest, write: CarriedWrite, replayed: boolean): SubmitAnswer {
    const { id, state, transactionHash, blockNumber, result, error } = viewOf(write);
    if (error !== undefined) {
      if (write.charged) operation?.happened();
      else operation?.cameToNothing();
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

function pending({ id, transaction }: CarriedWrite): KeywrightError {
  const facts = { submission_id: id, ...(transaction.hash === null ? {} : { transaction_hash: transaction.hash }) };
  return new KeywrightError(
    "submission_pending",
    "The write is still under way; ask for its submission later.",
    facts,
    { retryAfterSeconds: 5 },
  );
}
