/**
 * The writes of one transaction: encodes and simulates them, limits them to what it can hold, reserves for each, has
 * the executor authorize each by its own credential, and stores them. Each write leaves the batch once: stored, queued
 * for a later transaction or for one of its own, or refused with its reason.
 */
import { defined } from "../../../protocol/defined";
import { isErrorCode, KeywrightError } from "../../../protocol/errors";
import type { ExecutorAnswer, ExecutorRequest } from "../../../protocol/executor";
import { encodeForward } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { encodeWrite, isLease } from "../abi/contract";
import { fitsIntoBatch, limitAlone, limitTogether, mayShareForwards, type MeasuredCall } from "../payers/gasLimits";
import type { Lane } from "../payers/lanes";
import type { SubmissionId, SubmitRequest } from "../types";
import type { NewWrite } from "./begin";
import type { CarriedWrite, Carrier } from "./rows";
import { refusalIn, type Call } from "./simulation";
import type { SendingParts } from "./transactionMonitor";

/** Waits to be put into a transaction. */
export interface Waiting {
  readonly request: SubmitRequest;
  readonly id: SubmissionId;
  /** Ms since the epoch. */
  readonly deadline: number;
  readonly since: number;
  /** Must not share a transaction: too large, or itself a multicall. */
  alone: boolean;
  /** Whether credit is held for it; undefined until that was asked for. */
  isHeld: boolean | undefined;
  readonly resolve: (write: CarriedWrite) => void;
  readonly reject: (error: unknown) => void;
}

/** No write of its account or signer is in progress on any instance. */
interface Encoded extends Call {
  readonly waiting: Waiting;
  readonly turn: number;
  /** Of the signer of a forward request. */
  readonly signersTurn: number | null;
  /** What the executor is asked; undefined for a forward request, which is authorized by its signature. */
  readonly asked?: ExecutorRequest<"authorizeWrites">["writes"][number];
}

/** It would succeed with this gas. */
type Simulated = Encoded & MeasuredCall;

export interface BatchOptions extends SendingParts {
  readonly lane: Lane;
  readonly waiting: readonly Waiting[];
  /** Queues the write for a later transaction. */
  readonly again: (waiting: Waiting, pauseMs: number) => void;
  readonly refuse: (waiting: Waiting, error: unknown) => Promise<void>;
}

export class RepeatedKey extends Error {
  override readonly name = "RepeatedKey";
}

/** Between two looks at a busy account: the longer it has been waited for, the less another pause matters. */
const BUSY_PAUSE_MS = 50;
const BUSY_PAUSE_SHARE = 1 / 8;
/** Nodes accept no transaction above 128 KiB. */
const MAX_BYTES_TOGETHER = 120_000;

export class Batch {
  readonly #left: Set<Waiting>;
  #lane: Lane;
  #isInLane = true;
  readonly #options: BatchOptions;

  constructor(options: BatchOptions) {
    this.#options = options;
    this.#lane = options.lane;
    this.#left = new Set(options.waiting);
  }

  async carryOut(): Promise<void> {
    const { lanes, tuning } = this.#options;
    let carrier: Carrier | undefined;
    try {
      const made = await this.#encode();
      const tried = await this.#bound(await this.#simulate(made));
      const [first] = tried;
      if (first === undefined) return;
      const most = tuning.maxTransactionGas;
      const gasLimit = made.length === 1 ? limitAlone(first.gas, most) : limitTogether(tried, most);
      await this.#enterLaneThatPays(gasLimit, tried);
      carrier = await this.#store(gasLimit, await this.#authorize(await this.#reserve(tried)));
    } catch (error) {
      await Promise.all([...this.#left].map((waiting) => this.#drop(waiting, error)));
    } finally {
      if (this.#isInLane) lanes.leave(this.#lane.payer, carrier !== undefined);
    }
  }

  /** Encodes the writes whose accounts and signers have none in progress; the others are queued again shortly. */
  async #encode(): Promise<readonly Encoded[]> {
    const all = this.#options.waiting.map((waiting) => ({ waiting, signer: signerOf(waiting.request) }));
    const keys = all.flatMap(({ waiting, signer }) => [waiting.request.accountId, signer]);
    const turns = new Map(await this.#options.queue.turnsOf(keys.filter((key) => key !== null)));
    const made = await this.#each(all, async ({ waiting, signer }): Promise<Encoded | undefined> => {
      const turn = turns.get(waiting.request.accountId);
      const signersTurn = signer === null ? null : turns.get(signer);
      if (turn === undefined || signersTurn === undefined) return this.#later(waiting, busyPauseOf(waiting));
      // One request per signer and batch: the signer's next request needs the following nonce.
      if (signer !== null) turns.delete(signer);
      return { waiting, turn, signersTurn, ...(await callOf(waiting.request)) };
    });
    return this.#each(made, async (item) =>
      made.length === 1 || mayShare(item) ? item : this.#sendAlone(item.waiting),
    );
  }

  /** Finds the gas of each write; one that would fail is refused with its named error. */
  async #simulate(made: readonly Encoded[]): Promise<readonly Simulated[]> {
    const { simulation } = this.#options;
    // Requests that succeed individually may fail in sequence, so they are simulated in sequence.
    const probed = made.length > 1 ? await simulation.inSequence(made, this.#lane.address) : undefined;
    return this.#each(made, async (item, index): Promise<Simulated | undefined> => {
      const answer = probed?.[index];
      if (probed !== undefined && answer === undefined) return this.#later(item.waiting);
      if (answer?.succeeded === false && item.forward === undefined) throw refusalIn(answer.reason);
      // The forwarder gives no reason: alone, the request fails with a named error, or is sent.
      if (answer?.succeeded === false) return this.#sendAlone(item.waiting);
      const gas = answer?.gas ?? (await this.#gasAlone(item));
      if (gas === undefined) return this.#later(item.waiting);
      const simulated = { ...item, gas };
      return made.length === 1 || fitsIntoBatch(simulated) ? simulated : this.#sendAlone(item.waiting);
    });
  }

  /** Undefined where another request of the signer was mined meanwhile: this one is made again with the next nonce. */
  #gasAlone(item: Encoded): Promise<bigint | undefined> {
    const { request } = item.waiting;
    const isMadeInTurn = "forward" in request && typeof request.forward === "function";
    return this.#options.simulation.alone(item, this.#lane.address).catch((error: unknown) => {
      if (isMadeInTurn && error instanceof KeywrightError && error.code === "forward_nonce_used") return undefined;
      throw error;
    });
  }

  /** As many as one transaction may hold and the lane can pay for. */
  async #bound(simulated: readonly Simulated[]): Promise<readonly Simulated[]> {
    const { tuning, fees } = this.#options;
    const affordable = this.#lane.balanceWei / (await fees.now()).maxFeePerGas;
    const most = affordable < tuning.maxTransactionGas ? affordable : tuning.maxTransactionGas;
    let tried = simulated;
    while (tried.length > 1 && (limitTogether(tried, most) > most || sizeOf(tried) > MAX_BYTES_TOGETHER))
      tried = tried.slice(0, -1);
    for (const { waiting } of simulated.slice(tried.length)) this.#later(waiting);
    return tried;
  }

  async #enterLaneThatPays(gasLimit: bigint, tried: readonly Simulated[]): Promise<void> {
    const { lanes, fees } = this.#options;
    const cost = gasLimit * (await fees.now()).maxFeePerGas;
    if (this.#lane.balanceWei >= cost) return;
    // Batches that kept their places while they wait could leave each other none.
    lanes.leave(this.#lane.payer, false);
    this.#isInLane = false;
    this.#lane = await lanes.enter(cost, Math.min(...tried.map(({ waiting }) => waiting.deadline)));
    this.#isInLane = true;
  }

  #reserve(tried: readonly Simulated[]): Promise<readonly Simulated[]> {
    return this.#each(tried, async (item) => {
      const { waiting } = item;
      waiting.isHeld ??= (await waiting.request.reserve?.(waiting.id)) ?? false;
      return item;
    });
  }

  /** The writes that are permitted, as they are stored. */
  async #authorize(reserved: readonly Simulated[]): Promise<readonly NewWrite[]> {
    const writes = reserved.map(({ asked }) => asked).filter((asked) => asked !== undefined);
    const context = defined({ requestId: reserved[0]?.waiting.request.requestId });
    const verdicts =
      writes.length === 0 ? [] : (await this.#options.executor.call("authorizeWrites", { writes }, context)).writes;
    // By what was asked, so that no write is ever stored as what another's credential permits.
    const verdictOf = new Map(writes.map((asked, index) => [asked, verdicts[index]]));
    return this.#each(reserved, async (item) => {
      const { asked, calldata } = item;
      return newWriteOf(item, asked === undefined ? { calldata, tag: null } : callIn(verdictOf.get(asked)));
    });
  }

  /** Stores the writes under one nonce; undefined when every write missed its turn or the lane is draining. */
  async #store(gasLimit: bigint, writes: readonly NewWrite[]): Promise<Carrier | undefined> {
    if (writes.length === 0) return undefined;
    const { transactions, monitor } = this.#options;
    // All others have left the batch.
    const begun = [...this.#left].map((waiting) => ({ waiting, undo: waiting.request.operation?.begins() }));
    const carrier = await transactions.begin(this.#lane.payer, gasLimit, writes).catch(noneIfRepeated);
    if (carrier !== undefined) monitor.watch(carrier.transaction, carrier.writes);
    await this.#each(begun, async ({ waiting, undo }) => {
      this.#left.delete(waiting);
      const write = carrier?.writes.find(({ id }) => id === waiting.id);
      if (write !== undefined) return void waiting.resolve(write);
      undo?.();
      // It missed its turn, unless its idempotency key was used meanwhile.
      const earlier = await transactions.byIdempotencyKey(waiting.request.idempotencyKey);
      if (earlier !== undefined) throw new RepeatedKey();
      return this.#later(waiting);
    });
    return carrier;
  }

  #later(waiting: Waiting, pauseMs = 0): undefined {
    this.#left.delete(waiting);
    this.#options.again(waiting, pauseMs);
  }

  #sendAlone(waiting: Waiting): undefined {
    waiting.alone = true;
    return this.#later(waiting);
  }

  async #drop(waiting: Waiting, error: unknown): Promise<undefined> {
    this.#left.delete(waiting);
    await this.#options.refuse(waiting, error);
  }

  /** Those that stay in the batch. A failure concerns only the write it belongs to. */
  async #each<T extends Pick<Encoded, "waiting">, R extends object>(
    items: readonly T[],
    work: (item: T, index: number) => Promise<R | undefined>,
  ): Promise<R[]> {
    const done = await Promise.all(
      items.map((item, index) => work(item, index).catch((error: unknown) => this.#drop(item.waiting, error))),
    );
    return done.filter((item) => item !== undefined);
  }
}

/** Not beyond the deadline, at which it is refused. */
function busyPauseOf({ since, deadline }: Waiting): number {
  const now = Date.now();
  return Math.max(BUSY_PAUSE_MS, Math.min(BUSY_PAUSE_SHARE * (now - since), deadline - now));
}

const signerOf = (request: SubmitRequest): Address | null => ("forward" in request ? request.signer : null);

/** Calls that depend on contract state are made now. */
async function callOf(request: SubmitRequest): Promise<Call & Pick<Encoded, "asked">> {
  if ("forward" in request) {
    const forward = typeof request.forward === "function" ? await request.forward() : request.forward;
    return { forward, calldata: encodeForward(forward) };
  }
  const { credential, convert } = request;
  const write = typeof request.write === "function" ? await request.write() : request.write;
  return { asked: { credential, write, ...defined({ convert }) }, calldata: encodeWrite(write) };
}

/**
 * The contract does not nest batches, and a lease is a call of another one; a request with much gas or data would crowd
 * out others.
 */
const mayShare = ({ asked, forward }: Encoded): boolean =>
  forward === undefined
    ? asked !== undefined && !("calls" in asked.write) && !isLease(asked.write)
    : mayShareForwards(forward);

const sizeOf = (tried: readonly Simulated[]): number =>
  tried.reduce((sum, { calldata }) => sum + calldata.length / 2, 0);

function callIn(
  verdict: ExecutorAnswer<"authorizeWrites">["writes"][number] | undefined,
): Pick<NewWrite, "calldata" | "tag"> {
  if (verdict === undefined)
    throw new KeywrightError(
      "executor_unavailable",
      "The executor left a write unanswered. Nothing was sent or charged.",
    );
  if (!("refused" in verdict)) return verdict;
  const { code, detail, facts, retryAfterSeconds } = verdict.refused;
  if (!isErrorCode(code))
    throw new KeywrightError("executor_unavailable", "The executor refused for a reason this service does not know.");
  throw new KeywrightError(code, detail, facts ?? {}, defined({ retryAfterSeconds }));
}

function newWriteOf({ waiting, turn, signersTurn }: Encoded, call: Pick<NewWrite, "calldata" | "tag">): NewWrite {
  const { accountId, kind, idempotencyKey, requestId } = waiting.request;
  return {
    ...call,
    id: waiting.id,
    account_id: accountId,
    kind,
    turn,
    signer: signerOf(waiting.request),
    signers_turn: signersTurn,
    idempotency_key: idempotencyKey ?? null,
    billed: waiting.isHeld === true,
    request_id: requestId ?? null,
  };
}

/** Another relayer stored a write with the same idempotency key at the same moment. */
function noneIfRepeated(error: unknown): undefined {
  if ((error as { constraint?: unknown }).constraint === "writes_idempotency_key_key") return undefined;
  throw error;
}
