/** One write from the request to its outcome. Source: house "Add a group in API mode"; design "Submissions". */
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
import type { AccountQueue } from "./accountQueue";
import { busyAccount, type Batcher } from "./batcher";
import type { OutcomeFeed } from "./outcomeFeed";
import { newSubmissionId, RepeatedKey, viewOf, type SubmissionRecords, type SubmissionRow } from "./records";
import type { Simulation } from "./simulation";
import { hasOutcome } from "./states";

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

const BETWEEN_LOOKS_MS = 250;

export class Submitter {
  readonly #awaited = new Map<string, Set<(row: SubmissionRow) => void>>();
  #stopping = false;

  constructor(private readonly options: SubmitterOptions) {
    options.outcomes.subscribe((row) => {
      for (const wake of this.#awaited.get(row.id) ?? []) wake(row);
    });
  }

  stop(): void {
    this.#stopping = true;
  }

  /** Asks the contract, as a payer, whether the write would succeed. A revert throws the named error. */
  async simulate(write: ContractWrite): Promise<void> {
    const { simulation, lanes } = this.options;
    await simulation.alone(encodeWrite(write), (await lanes.anyRegistered()).address);
  }

  async submit(request: SubmitRequest): Promise<SubmitAnswer> {
    if (this.#stopping) throw new KeywrightError("shutting_down", "The service is shutting down; nothing was sent or charged.", {}, { retryAfterSeconds: 5 });
    const deadline = Date.now() + (request.waitMs ?? this.options.tuning.answerWithinMs);
    const earlier = await this.#earlier(request);
    if (earlier !== undefined) return this.#answer(request, await this.#outcome(earlier, deadline), true);
    const leave = await this.options.queue.enter(request.accountId, deadline, busyAccount);
    try {
      const row = await this.options.batcher.add(request, newSubmissionId(), deadline);
      return this.#answer(request, await this.#outcome(row, deadline), false);
    } catch (error) {
      // The same forward request sent twice at once: the second finds its nonce used by the first.
      const repeated = error instanceof RepeatedKey || "forward" in request ? await this.#earlier(request) : undefined;
      if (repeated === undefined) throw error;
      return this.#answer(request, await this.#outcome(repeated, deadline), true);
    } finally {
      leave();
    }
  }

  async #earlier({ idempotencyKey }: SubmitRequest): Promise<SubmissionRow | undefined> {
    return idempotencyKey === undefined ? undefined : this.options.records.byIdempotencyKey(idempotencyKey);
  }

  /** The row with an outcome as deep as configured. Throws `submission_pending`. */
  async #outcome(begun: SubmissionRow, deadline: number): Promise<SubmissionRow> {
    for (let row = begun; ; row = (await this.options.records.load(row.id)) ?? row) {
      if (hasOutcome(row.state) && (await this.#isDeepEnough(row, deadline))) return row;
      if (Date.now() >= deadline) throw pending(row);
      const ended = await this.#nextWord(row.id, deadline);
      if (ended !== undefined && (await this.#isDeepEnough(ended, deadline))) return ended;
    }
  }

  /** What the monitor publishes, or undefined when it is time to look into the store (another instance may watch it). */
  #nextWord(id: string, deadline: number): Promise<SubmissionRow | undefined> {
    const listeners = this.#awaited.get(id) ?? new Set();
    this.#awaited.set(id, listeners);
    return new Promise((resolve) => {
      const wake = (row?: SubmissionRow): void => {
        clearTimeout(timer);
        listeners.delete(wake);
        if (listeners.size === 0) this.#awaited.delete(id);
        resolve(row);
      };
      const timer = setTimeout(wake, Math.max(0, Math.min(BETWEEN_LOOKS_MS, deadline - Date.now())));
      listeners.add(wake);
    });
  }

  /** At the configured depth, and at that time still in the block it was seen in. */
  async #isDeepEnough(row: SubmissionRow, deadline: number): Promise<boolean> {
    const { confirmationsBeforeAnswer, head, rpc } = this.options;
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
    if (transactionHash === undefined || blockNumber === undefined) throw new Error(`submission ${id} is ${state} without a transaction`);
    return { submissionId: id, transactionHash: transactionHash as Hash32, blockNumber, result: result ?? {}, replayed };
  }
}

function pending(row: SubmissionRow): KeywrightError {
  const facts = { submission_id: row.id, ...(row.transaction_hash === null ? {} : { transaction_hash: row.transaction_hash }) };
  return new KeywrightError("submission_pending", "The write is still under way; ask for its submission later.", facts, { retryAfterSeconds: 5 });
}
