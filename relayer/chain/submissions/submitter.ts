/** Takes one write from the request to its outcome. */
import { KeywrightError } from "../../../protocol/errors";
import type { Receipt } from "../abi/receipts";
import { viewOf } from "../reads/submissionView";
import type { SubmitAnswer, SubmitRequest } from "../types";
import { tryAgain } from "./accountQueue";
import { RepeatedKey } from "./batch";
import type { Batcher } from "./batcher";
import { OutcomeWatch } from "./outcomeWatch";
import type { Parts } from "./parts";
import { newSubmissionId, type CarriedWrite } from "./rows";
import { hasOutcome } from "./states";

export interface SubmitterOptions extends Parts {
  readonly batcher: Batcher;
  readonly confirmationsBeforeAnswer: number;
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

  async submit(request: SubmitRequest): Promise<SubmitAnswer> {
    if (this.#stopping) throw tryAgain("shutting_down", "The service is shutting down; nothing was sent or charged.");
    const { queue, batcher, tuning } = this.#options;
    const deadline = Date.now() + (request.waitMs ?? tuning.answerWithinMs);
    const earlier = await this.#earlier(request);
    if (earlier !== undefined) return this.#answer(request, await this.#outcome(earlier, deadline), true);
    try {
      await request.admit?.();
      const write = async (): Promise<SubmitAnswer> => {
        const added = await batcher.add(request, newSubmissionId(), deadline);
        return this.#answer(request, await this.#outcome(added, deadline), false);
      };
      return await queue.inTurn(request.accountId, deadline, write, request.usageKey);
    } catch (error) {
      // The same forward request sent twice concurrently: the second finds its nonce used by the first.
      const repeated = error instanceof RepeatedKey || "forward" in request ? await this.#earlier(request) : undefined;
      if (repeated === undefined) throw error;
      return this.#answer(request, await this.#outcome(repeated, deadline), true);
    }
  }

  async #earlier({ idempotencyKey, accountId }: SubmitRequest): Promise<CarriedWrite | undefined> {
    const earlier = await this.#options.transactions.byIdempotencyKey(idempotencyKey);
    if (earlier !== undefined && earlier.account_id !== accountId)
      throw new KeywrightError("idempotency_conflict", "This Idempotency-Key was used for another account.");
    return earlier;
  }

  #answer({ operation }: SubmitRequest, write: CarriedWrite, replayed: boolean): SubmitAnswer {
    const { id, state, transactionHash, blockNumber, result, error } = viewOf(write);
    if (error !== undefined) {
      // As stored: it has cost gas, whoever pays for it.
      if (write.error?.facts["charged"] === true) operation?.happened();
      else operation?.cameToNothing();
      throw new KeywrightError(error.code, error.detail, { ...error.facts, submission_id: id });
    }
    if (transactionHash === undefined || blockNumber === undefined)
      throw new Error(`submission ${id} is ${state} without a transaction`);
    return { submissionId: id, transactionHash, blockNumber, result: result ?? {}, replayed };
  }

  /** The write once it has an outcome at the configured depth. Throws `submission_pending`. */
  async #outcome(begun: CarriedWrite, deadline: number): Promise<CarriedWrite> {
    let write = begun;
    while (!(hasOutcome(write) && (await this.#isDeepEnough(write)))) {
      if (this.#stopping || Date.now() >= deadline)
        throw pending((await this.#options.transactions.write(write.id)) ?? write);
      if (hasOutcome(write) && !this.#hasDepth(write)) await this.#options.head.next(deadline - Date.now());
      else write = (await this.#watch.next(write.id, deadline)) ?? write;
    }
    return write;
  }

  /** Whether the block is at the configured depth and still contains the transaction. */
  async #isDeepEnough(write: CarriedWrite): Promise<boolean> {
    const { confirmationsBeforeAnswer, rpc } = this.#options;
    if (write.block_number === null || confirmationsBeforeAnswer <= 1) return true;
    if (!this.#hasDepth(write)) return false;
    const receipt = await rpc.call<Receipt | null>("eth_getTransactionReceipt", [write.hash]);
    return receipt?.blockHash === write.block_hash;
  }

  #hasDepth({ block_number: block }: CarriedWrite): boolean {
    const { confirmationsBeforeAnswer, head } = this.#options;
    return head.number >= (block ?? 0) + confirmationsBeforeAnswer - 1;
  }
}

const pending = ({ id, hash }: CarriedWrite): KeywrightError =>
  tryAgain("submission_pending", "The write is still under way; ask for its submission later.", {
    submission_id: id,
    ...(hash === null ? {} : { transaction_hash: hash }),
  });
