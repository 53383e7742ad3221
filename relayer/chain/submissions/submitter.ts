/** One write from the request to its outcome. Source: house "Add a group in API mode"; design "Submissions". */
import { KeywrightError } from "../../../protocol/errors";
import type { Address, Hash32 } from "../../../protocol/ids";
import type { ContractWrite } from "../../../protocol/executor";
import { encodeForward, type SignedForwardRequest } from "../../../protocol/forward";
import { encodeWrite } from "../abi/contract";
import type { TransactionMonitor } from "./transactionMonitor";
import type { FeeOracle } from "../payers/fees";
import type { Head } from "../rpc/head";
import type { Lane, Lanes } from "../payers/lanes";
import { simulateForward } from "./forwardSimulation";
import type { OutcomeFeed } from "./outcomeFeed";
import { newSubmissionId, RepeatedKey, viewOf, type SubmissionRecords, type SubmissionRow } from "./records";
import type { Receipt } from "../abi/receipts";
import { namedError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import type { ChainTuning } from "../settings";
import { hasOutcome } from "./states";
import type { Turn, AccountQueue } from "./accountQueue";
import type { ExecutorPort, SubmissionHooks, SubmissionId, SubmitAnswer, SubmitRequest } from "../types";

export interface SubmitterOptions {
  readonly rpc: RpcClient;
  readonly records: SubmissionRecords;
  readonly monitor: TransactionMonitor;
  readonly outcomes: OutcomeFeed;
  readonly executor: ExecutorPort;
  readonly hooks: SubmissionHooks;
  readonly head: Head;
  readonly fees: FeeOracle;
  readonly lanes: Lanes;
  readonly queue: AccountQueue;
  readonly contractAddress: Address;
  readonly forwarder: () => Promise<Address>;
  /** The block reads must not be older than. */
  readonly minBlock: () => Promise<number>;
  readonly confirmationsBeforeAnswer: number;
  readonly tuning: ChainTuning;
}

const BETWEEN_LOOKS_MS = 250;

/** What is to be sent: a payer's call that a credential allows, or an owner's signed request. */
type Content = { readonly write: ContractWrite } | { readonly forward: SignedForwardRequest };

/** Simulated with success, at this turn of its account. */
interface Ready {
  readonly turn: Turn;
  readonly content: Content;
  readonly lane: Lane;
  readonly gasLimit: bigint;
}

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

  /** Asks the contract, as a payer, whether the write would succeed; gives the gas it would take. A revert throws the named error. */
  async simulate(write: ContractWrite, from?: Address): Promise<bigint> {
    const { rpc, lanes, contractAddress, minBlock } = this.options;
    const sender = from ?? (await lanes.anyRegistered()).address;
    const call = { from: sender, to: contractAddress, data: encodeWrite(write) };
    try {
      const { values } = await rpc.callAt(await minBlock(), (block) => [{ method: "eth_estimateGas", params: [call, block] }]);
      return BigInt(values[0] as string);
    } catch (error) {
      throw ourPayerIsUnknown(error) ?? namedError(error);
    }
  }

  async submit(request: SubmitRequest): Promise<SubmitAnswer> {
    if (this.#stopping) throw new KeywrightError("shutting_down", "The service is shutting down; nothing was sent or charged.", {}, { retryAfterSeconds: 5 });
    const deadline = Date.now() + (request.waitMs ?? this.options.tuning.answerWithinMs);
    const earlier = await this.#earlier(request);
    if (earlier !== undefined) return this.#answer(request, await this.#outcome(earlier, deadline), true);
    const leave = await this.options.queue.enter(request.accountId, deadline, busyAccount);
    try {
      const row = await this.#begin(request, deadline);
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

  /** Everything up to the row in the store. What was reserved is given up if it does not come to that. */
  async #begin(request: SubmitRequest, deadline: number): Promise<SubmissionRow> {
    const id = newSubmissionId();
    let reserved = false;
    try {
      for (;;) {
        const ready = await this.#simulateInTurn(request, deadline);
        const row = await this.#inLane(ready.lane, async () => {
          if (!reserved) await request.reserve?.(id);
          reserved = true;
          return this.#writeDown(request, id, ready);
        });
        if (row !== undefined) return row;
      }
    } catch (error) {
      if (reserved && request.reserve !== undefined) await this.options.hooks.onAbandon(id);
      throw error;
    }
  }

  /** The place in the lane is kept by the row, if there comes to be one. */
  async #inLane(lane: Lane, begin: () => Promise<SubmissionRow | undefined>): Promise<SubmissionRow | undefined> {
    let row: SubmissionRow | undefined;
    try {
      row = await begin();
      return row;
    } finally {
      if (row === undefined) this.options.lanes.leave(lane.payer);
    }
  }

  async #simulateInTurn(request: SubmitRequest, deadline: number): Promise<Ready> {
    const { queue, lanes, fees } = this.options;
    const turn = await queue.whenFree(request.accountId, deadline, busyAccount);
    const content = await contentOf(request);
    const gasLimit = this.#withMargin("write" in content ? await this.simulate(content.write) : await this.#simulateForward(content.forward));
    const { maxFeePerGas } = await fees.now();
    return { turn, content, lane: await lanes.enter(turn.payer, gasLimit * maxFeePerGas, deadline), gasLimit };
  }

  /** The margin ends where the protocol ends a transaction. */
  #withMargin(estimate: bigint): bigint {
    const { maxTransactionGas } = this.options.tuning;
    if (estimate > maxTransactionGas) {
      throw new KeywrightError("invalid_value", "This write needs more gas than one transaction may use; split it into several.");
    }
    const limit = (estimate * 13n) / 10n + 20_000n;
    return limit < maxTransactionGas ? limit : maxTransactionGas;
  }

  async #writeDown(request: SubmitRequest, id: SubmissionId, { turn, content, lane, gasLimit }: Ready): Promise<SubmissionRow | undefined> {
    const { records, monitor } = this.options;
    const { requestId } = request;
    const { calldata, tag } = await this.#permitted(request, content);
    const didNotBegin = request.act?.begins();
    const row = await records.begin({
      id,
      accountId: request.accountId,
      kind: request.kind,
      payer: lane.payer,
      turn: turn.number,
      calldata,
      tag,
      gasLimit,
      idempotencyKey: request.idempotencyKey,
      billed: request.reserve !== undefined,
      requestId,
    });
    if (row === undefined) {
      didNotBegin?.();
      return undefined;
    }
    monitor.watch(row);
    return row;
  }

  /** The call with the executor's mark; a forward request carries its owner's permission itself. */
  async #permitted(request: SubmitRequest, content: Content): Promise<{ calldata: string; tag: string | null }> {
    if ("forward" in content) return { calldata: encodeForward(content.forward), tag: null };
    if (!("credential" in request)) throw new TypeError("a write comes with its credential");
    const { credential, convert, requestId } = request;
    const asked = { credential, write: content.write, ...(convert === undefined ? {} : { convert }) };
    return this.options.executor.call("authorizeWrite", asked, requestId === undefined ? {} : { requestId });
  }

  async #simulateForward(forward: SignedForwardRequest): Promise<bigint> {
    const { rpc, lanes, forwarder, minBlock } = this.options;
    const payer = async (): Promise<Address> => (await lanes.anyRegistered()).address;
    return simulateForward(forward, { rpc, forwarder, minBlock, payer });
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

async function contentOf(request: SubmitRequest): Promise<Content> {
  if ("forward" in request) return { forward: typeof request.forward === "function" ? await request.forward() : request.forward };
  return { write: typeof request.write === "function" ? await request.write() : request.write };
}

function pending(row: SubmissionRow): KeywrightError {
  const facts = { submission_id: row.id, ...(row.transaction_hash === null ? {} : { transaction_hash: row.transaction_hash }) };
  return new KeywrightError("submission_pending", "The write is still under way; ask for its submission later.", facts, { retryAfterSeconds: 5 });
}

function busyAccount(): KeywrightError {
  return new KeywrightError(
    "timed_out",
    "Earlier writes of this account took too long; nothing was sent or charged for this one.",
    {},
    { retryAfterSeconds: 5 },
  );
}

/** `NotAuthorized` names the sender, and the sender is our payer: not the client's fault. */
function ourPayerIsUnknown(error: unknown): KeywrightError | undefined {
  const named = namedError(error);
  if (!(named instanceof KeywrightError) || named.code !== "not_authorized") return undefined;
  return new KeywrightError(
    "no_payer_available",
    "The contract does not know this service's API payer. Nothing was sent or charged.",
    {},
    { cause: error, retryAfterSeconds: 10 },
  );
}
