/**
 * Combines writes into transactions. Writes waiting when a lane becomes free are batched: each is simulated, reserved
 * and authorized individually, and those that remain share one nonce and one signature. An idle service does not wait;
 * a single write is sent as it is.
 */
import { isErrorCode, KeywrightError } from "../../../protocol/errors";
import { forwarderCalldata } from "../../../protocol/forward";
import type { ExecutorAnswer, ExecutorRequest, TaggedCall } from "../../../protocol/executor";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle } from "../payers/fees";
import { allBusy, type Lane, type Lanes } from "../payers/lanes";
import type { ExecutorPort, SubmissionHooks, SubmissionId, SubmitRequest } from "../types";
import type { RpcClient } from "../rpc/client";
import type { AccountQueue, Turn } from "./accountQueue";
import { bytesOf, contentOf, goTogether, isMadeInTurn, mayShare, signerOf, turnKeysOf, type Content } from "./content";
import { limitOfForwards } from "./forwardGas";
import { simulateForward } from "./forwardSimulation";
import type { OutcomeFeed } from "./outcomeFeed";
import type { NewSubmission } from "./newRows";
import { RepeatedKey, type SubmissionRecords } from "./records";
import type { SubmissionRow, Unit } from "./rows";
import type { Simulation } from "./simulation";
import type { TransactionMonitor } from "./transactionMonitor";
import { defined } from "../../../protocol/defined";

export interface BatcherOptions {
  readonly records: SubmissionRecords;
  readonly monitor: TransactionMonitor;
  readonly executor: ExecutorPort;
  readonly hooks: SubmissionHooks;
  readonly fees: FeeOracle;
  readonly lanes: Lanes;
  readonly queue: AccountQueue;
  readonly outcomes: OutcomeFeed;
  readonly simulation: Simulation;
  readonly maxTransactionGas: bigint;
  readonly rpc: RpcClient;
  readonly forwarder: () => Promise<Address>;
  /** The minimum block for reads. */
  readonly minBlock: () => Promise<number>;
}

/** A write waiting to be put into a transaction. */
interface Waiting {
  readonly request: SubmitRequest;
  readonly id: SubmissionId;
  /** Ms since the epoch. */
  readonly deadline: number;
  readonly since: number;
  /** Must not share a transaction: too large, or itself a multicall. */
  alone: boolean;
  held: boolean;
  readonly resolve: (row: SubmissionRow) => void;
  readonly reject: (error: unknown) => void;
}
interface Made extends InTurn {
  readonly content: Content;
  readonly calldata: string;
}
interface InTurn {
  readonly waiting: Waiting;
  readonly turn: Turn;
  /** Of the signer of a forward request. */
  readonly signersTurn: Turn | undefined;
}
interface Tried extends Made {
  readonly gas: bigint;
}
interface Authorized extends Tried {
  readonly call: Pick<NewSubmission, "calldata" | "tag">;
}

const MOST_TOGETHER = 32;
/** Nodes accept no transaction above 128 KiB. */
const MOST_BYTES_TOGETHER = 120_000;
const GATHER_MS = 8;
const BUSY_PAUSE_MS = 50;
const BETWEEN_LOOKS_MS = 25;
/** Gas a lane must be able to pay for before a write's actual gas is known. */
const USUAL_WRITE_GAS = 200_000n;

export class Batcher {
  #waiting: Waiting[] = [];
  #isPumping = false;
  /** Transactions of this instance being prepared or without an outcome, and when the last one ended. */
  #underWay = 0;
  #lastEnd = 0;
  #wakeUp: () => void = () => undefined;

  constructor(private readonly options: BatcherOptions) {
    options.outcomes.subscribe(({ batch_id, account_id, kind }) => {
      if (batch_id === null && (account_id !== null || kind === "batch")) this.#noteEnd();
    });
  }

  /** The row of the write, once it has a nonce. Throws the reason if it fails before that, with nothing charged. */
  add(request: SubmitRequest, id: SubmissionId, deadline: number): Promise<SubmissionRow> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ request, id, deadline, since: Date.now(), alone: false, held: false, resolve, reject });
    });
  }

  #noteEnd(): void {
    this.#underWay = Math.max(0, this.#underWay - 1);
    this.#lastEnd = Date.now();
  }

  #enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    if (this.#waiting.length >= MOST_TOGETHER) this.#wakeUp();
    if (!this.#isPumping) void this.#pump();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    while (this.#waiting.length > 0) {
      await this.#gather();
      await this.#next();
    }
    this.#isPumping = false;
  }

  /** While other transactions are in progress, wait briefly for more writes. */
  async #gather(): Promise<void> {
    const now = Date.now();
    const isIdle = this.#underWay === 0 && now - this.#lastEnd > GATHER_MS;
    const left = (this.#waiting[0]?.since ?? now) + GATHER_MS - now;
    if (isIdle || left <= 0 || this.#waiting.length >= MOST_TOGETHER) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, left);
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Takes a lane and the writes waiting at that time. */
  async #next(): Promise<void> {
    try {
      const { maxFeePerGas } = await this.options.fees.now();
      const lane = await this.options.lanes.tryEnter(USUAL_WRITE_GAS * maxFeePerGas);
      if (lane === undefined) return await this.#waitForRoom();
      const taken = this.#take();
      this.#underWay += 1;
      void this.#carryOut(lane, taken);
    } catch (error) {
      await this.#refuseWaiting(() => true, error);
    }
  }

  /** Waits briefly, then refuses writes past their deadline. */
  async #waitForRoom(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_LOOKS_MS));
    const now = Date.now();
    await this.#refuseWaiting(({ deadline }) => deadline <= now, allBusy());
  }

  async #refuseWaiting(which: (waiting: Waiting) => boolean, error: unknown): Promise<void> {
    const refused = this.#waiting.filter(which);
    this.#waiting = this.#waiting.filter((waiting) => !which(waiting));
    await Promise.all(refused.map((waiting) => this.#refuse(waiting, error)));
  }

  #take(): Waiting[] {
    const [first] = this.#waiting;
    if (first === undefined) return [];
    const company = this.#waiting.filter(({ alone, request }) => !alone && goTogether(request, first.request));
    const taken = first.alone ? [first] : company.slice(0, MOST_TOGETHER);
    const isTaken = new Set(taken);
    this.#waiting = this.#waiting.filter((waiting) => !isTaken.has(waiting));
    return taken;
  }

  async #carryOut(entered: Lane, taken: readonly Waiting[]): Promise<void> {
    const left = new Set(taken);
    let lane = entered;
    let unit: Unit | undefined;
    try {
      const made = await this.#make(await this.#inTurn(taken, left), left);
      const simulated = await this.#simulate(made, lane, left);
      const { tried, gasLimit } = await this.#bounded(simulated, made.length === 1, lane, left);
      if (tried.length === 0) return;
      lane = await this.#laneThatPays(lane, gasLimit, tried);
      const authorized = await this.#authorize(await this.#hold(tried, left), left);
      if (authorized.length > 0) unit = await this.#writeDown(lane, gasLimit, authorized, left);
    } catch (error) {
      await Promise.all([...left].map((waiting) => this.#refuse(waiting, error)));
    } finally {
      if (unit === undefined) {
        this.options.lanes.leave(lane.payer);
        this.#noteEnd();
      } else this.options.lanes.begin(lane.payer);
    }
  }

  /**
   * Keeps the writes whose accounts and signers have no write in progress on any instance; the others are requeued
   * shortly.
   */
  async #inTurn(taken: readonly Waiting[], left: Set<Waiting>): Promise<readonly InTurn[]> {
    const turns = new Map(await this.options.queue.turnsOf(taken.flatMap(({ request }) => turnKeysOf(request))));
    return taken.flatMap((waiting): InTurn[] => {
      const { request } = waiting;
      const [turn, signersTurn] = turnKeysOf(request).map((key) => turns.get(key));
      const signer = signerOf(request);
      if (turn !== undefined && (signer === undefined || signersTurn !== undefined)) {
        // The signer's next request needs the nonce after this one's.
        if (signer !== undefined) turns.delete(signer);
        return [{ waiting, turn, signersTurn }];
      }
      left.delete(waiting);
      setTimeout(() => this.#again(waiting), BUSY_PAUSE_MS);
      return [];
    });
  }

  #again(waiting: Waiting): void {
    if (Date.now() < waiting.deadline) this.#enqueue(waiting);
    else void this.#refuse(waiting, busyAccount());
  }

  /** Encodes the writes; those that depend on contract state are made now. */
  async #make(inTurn: readonly InTurn[], left: Set<Waiting>): Promise<readonly Made[]> {
    const made = await this.#each(inTurn, left, async (item): Promise<Made> => {
      const content = await contentOf(item.waiting.request);
      return { ...item, content, calldata: bytesOf(content) };
    });
    if (made.length === 1) return made;
    for (const item of made) if (!mayShare(item.content)) this.#sendAlone(item, left);
    return made.filter(({ content }) => mayShare(content));
  }

  /** Estimates the gas of each write; one that would fail is refused with its named error. */
  async #simulate(made: readonly Made[], lane: Lane, left: Set<Waiting>): Promise<readonly Tried[]> {
    const { simulation } = this.options;
    const [only] = made;
    if (made.length <= 1 || only === undefined) return this.#eachAlone(made, lane, left);
    if ("forward" in only.content) return this.#simulateForwards(made, lane, left);
    const answers = await simulation.together(
      made.map(({ calldata }) => calldata),
      lane.address,
    );
    const found = await Promise.all(
      made.map(async (item, index): Promise<Tried | undefined> => {
        const answer = answers[index];
        if (answer === undefined) return this.#later(item, left);
        if ("refused" in answer) return this.#drop(item, left, answer.refused);
        if (!simulation.fitsIntoBatch(item.calldata, answer.gas)) return this.#sendAlone(item, left);
        return { ...item, gas: answer.gas };
      }),
    );
    return found.filter((item) => item !== undefined);
  }

  /** In sequence as well: two requests may each succeed alone and not one after the other. */
  async #simulateForwards(made: readonly Made[], lane: Lane, left: Set<Waiting>): Promise<readonly Tried[]> {
    const { simulation, forwarder } = this.options;
    const calls = made.flatMap(({ content }) =>
      "forward" in content ? [forwarderCalldata([content.forward], lane.address)] : [],
    );
    const probed = await simulation.inSequence(await forwarder(), calls, lane.address);
    if (probed === undefined) return this.#eachAlone(made, lane, left);
    const found = await Promise.all(
      made.map(async (item, index): Promise<Tried | undefined> => {
        const answer = probed[index];
        if (answer === undefined) return this.#later(item, left);
        if (answer.succeeded) return { ...item, gas: answer.gas };
        // The forwarder does not say why: alone, it gets its name, or succeeds and is sent so.
        const tried = await this.#tryAlone(item, lane, left);
        return tried === undefined ? undefined : this.#sendAlone(item, left);
      }),
    );
    return found.filter((item) => item !== undefined);
  }

  async #eachAlone(made: readonly Made[], lane: Lane, left: Set<Waiting>): Promise<readonly Tried[]> {
    const tried = await Promise.all(made.map((item) => this.#tryAlone(item, lane, left)));
    return tried.filter((item) => item !== undefined);
  }

  async #tryAlone(item: Made, lane: Lane, left: Set<Waiting>): Promise<Tried | undefined> {
    try {
      return { ...item, gas: await this.#gasAlone(item, lane) };
    } catch (error) {
      // Another request of the signer was mined meanwhile: make this one again, with the next nonce.
      if (error instanceof KeywrightError && error.code === "forward_nonce_used" && isMadeInTurn(item.waiting.request))
        return this.#later(item, left);
      return this.#drop(item, left, error);
    }
  }

  #gasAlone({ content, calldata }: Made, lane: Lane): Promise<bigint> {
    const { simulation, rpc, forwarder, minBlock } = this.options;
    if ("write" in content) return simulation.alone(calldata, lane.address);
    return simulateForward(content.forward, { rpc, forwarder, minBlock, payer: lane.address });
  }

  /** Limits the batch to what one transaction may hold and the lane can pay for; returns its gas limit. */
  async #bounded(
    tried: readonly Tried[],
    isAlone: boolean,
    { balanceWei }: Lane,
    left: Set<Waiting>,
  ): Promise<{ readonly tried: readonly Tried[]; readonly gasLimit: bigint }> {
    const { simulation, maxTransactionGas, fees } = this.options;
    const [only] = tried;
    if (isAlone && only !== undefined) return { tried, gasLimit: simulation.limitAlone(only.gas) };
    const affordable = balanceWei / (await fees.now()).maxFeePerGas;
    const mostGas = affordable < maxTransactionGas ? affordable : maxTransactionGas;
    let kept = tried;
    while (kept.length > 1 && (this.#limitTogether(kept) > mostGas || sizeOf(kept) > MOST_BYTES_TOGETHER))
      kept = kept.slice(0, -1);
    for (const item of tried.slice(kept.length)) void this.#later(item, left);
    return { tried: kept, gasLimit: this.#limitTogether(kept) };
  }

  #limitTogether(tried: readonly Tried[]): bigint {
    const forwards = tried.flatMap(({ content, gas }) =>
      "forward" in content ? [{ request: content.forward, gas }] : [],
    );
    if (forwards.length > 0) return limitOfForwards(forwards);
    const { simulation } = this.options;
    const [only] = tried;
    return tried.length === 1 && only !== undefined ? simulation.limitLeftAlone(only) : simulation.limitTogether(tried);
  }

  async #laneThatPays(lane: Lane, gasLimit: bigint, tried: readonly Tried[]): Promise<Lane> {
    const { lanes, fees } = this.options;
    const cost = gasLimit * (await fees.now()).maxFeePerGas;
    if (lane.balanceWei >= cost) return lane;
    const other = await lanes.enter(cost, Math.min(...tried.map(({ waiting }) => waiting.deadline)));
    lanes.leave(lane.payer);
    return other;
  }

  async #hold(tried: readonly Tried[], left: Set<Waiting>): Promise<readonly Tried[]> {
    return this.#each(tried, left, async (item) => {
      if (!item.waiting.held) await item.waiting.request.reserve?.(item.waiting.id);
      item.waiting.held = true;
      return item;
    });
  }

  /** The executor authorizes each write by its own credential. A forward request is authorized by its signature. */
  async #authorize(tried: readonly Tried[], left: Set<Waiting>): Promise<readonly Authorized[]> {
    const [first] = tried;
    if (first === undefined) return [];
    if ("forward" in first.content)
      return tried.map((item) => ({ ...item, call: { calldata: item.calldata, tag: null } }));
    const requestId = tried[0]?.waiting.request.requestId;
    const writes = tried.map(writeToAuthorize);
    const answer = await this.options.executor.call(
      "authorizeWrites",
      { writes },
      requestId === undefined ? {} : { requestId },
    );
    return this.#each(
      tried.map((item, index) => ({ item, verdict: answer.writes[index], waiting: item.waiting })),
      left,
      async ({ item, verdict }): Promise<Authorized> => ({ ...item, call: callIn(verdict) }),
    );
  }

  /** Stores the batch under one nonce; undefined when every write missed its turn or the lane is draining. */
  async #writeDown(
    lane: Lane,
    gasLimit: bigint,
    authorized: readonly Authorized[],
    left: Set<Waiting>,
  ): Promise<Unit | undefined> {
    const { records, monitor } = this.options;
    const didNotBegin = new Map(authorized.map(({ waiting }) => [waiting, waiting.request.act?.begins()]));
    const writes = authorized.map(newSubmissionOf);
    const [single] = writes;
    const unit =
      writes.length === 1 && single !== undefined
        ? unitOf(await records.begin({ ...single, payer: lane.payer, gasLimit }))
        : await records.beginBatch({ payer: lane.payer, gasLimit, writes });
    if (unit !== undefined) monitor.watch(unit.row, unit.members);
    const rows = new Map((unit === undefined ? [] : [unit.row, ...unit.members]).map((row) => [row.id, row]));
    for (const { waiting } of authorized) {
      left.delete(waiting);
      const row = rows.get(waiting.id);
      if (row !== undefined) {
        waiting.resolve(row);
        continue;
      }
      didNotBegin.get(waiting)?.();
      void this.#retry(waiting);
    }
    return unit;
  }

  /** Queues it again after a missed turn, unless its idempotency key was used meanwhile. */
  async #retry(waiting: Waiting): Promise<void> {
    const { idempotencyKey } = waiting.request;
    try {
      if (idempotencyKey !== undefined && (await this.options.records.byIdempotencyKey(idempotencyKey)) !== undefined)
        throw new RepeatedKey();
      this.#again(waiting);
    } catch (error) {
      await this.#refuse(waiting, error);
    }
  }

  #later({ waiting }: InTurn, left: Set<Waiting>): undefined {
    left.delete(waiting);
    this.#again(waiting);
    return undefined;
  }

  #sendAlone(item: InTurn, left: Set<Waiting>): undefined {
    item.waiting.alone = true;
    return this.#later(item, left);
  }

  async #drop({ waiting }: InTurn, left: Set<Waiting>, error: unknown): Promise<undefined> {
    left.delete(waiting);
    await this.#refuse(waiting, error);
    return undefined;
  }

  /** A failure concerns only the write it belongs to. */
  async #each<T extends { readonly waiting: Waiting }, R>(
    items: readonly T[],
    left: Set<Waiting>,
    work: (item: T) => Promise<R>,
  ): Promise<R[]> {
    const done = await Promise.all(
      items.map(async (item): Promise<R | undefined> => {
        try {
          return await work(item);
        } catch (error) {
          left.delete(item.waiting);
          await this.#refuse(item.waiting, error);
          return undefined;
        }
      }),
    );
    return done.filter((item): item is Awaited<R> & R => item !== undefined);
  }

  /** Releases the write's reservation and rejects it. */
  async #refuse({ request, id, held, reject }: Waiting, error: unknown): Promise<void> {
    if (held && request.reserve !== undefined) await this.options.hooks.onAbandon(id);
    reject(error);
  }
}

const sizeOf = (tried: readonly Tried[]): number => tried.reduce((sum, { calldata }) => sum + calldata.length / 2, 0);

function writeToAuthorize({
  waiting: { request },
  content,
}: Tried): ExecutorRequest<"authorizeWrites">["writes"][number] {
  if (!("credential" in request && "write" in content))
    throw new TypeError("only a write with its credential is authorised");
  return { credential: request.credential, write: content.write, ...defined({ convert: request.convert }) };
}

function newSubmissionOf({
  waiting: { request, id },
  turn,
  signersTurn,
  call,
}: Authorized): Omit<NewSubmission, "payer" | "gasLimit"> {
  const { accountId, kind, idempotencyKey, reserve, requestId } = request;
  const address = signerOf(request);
  const signer =
    address === undefined || signersTurn === undefined ? {} : { signer: { address, turn: signersTurn.number } };
  return {
    id,
    accountId,
    kind,
    turn: turn.number,
    ...call,
    ...signer,
    idempotencyKey,
    billed: reserve !== undefined,
    requestId,
  };
}

const unitOf = (row: SubmissionRow | undefined): Unit | undefined =>
  row === undefined ? undefined : { row, members: [] };

function callIn(verdict: ExecutorAnswer<"authorizeWrites">["writes"][number] | undefined): TaggedCall {
  if (verdict === undefined)
    throw new KeywrightError(
      "executor_unavailable",
      "The executor left a write unanswered. Nothing was sent or charged.",
    );
  if (!("refused" in verdict)) return verdict;
  const { code, detail, facts, retryAfterSeconds } = verdict.refused;
  if (!isErrorCode(code))
    throw new KeywrightError("executor_unavailable", "The executor refused for a reason this service does not know.");
  throw new KeywrightError(code, detail, facts ?? {}, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}

export function busyAccount(): KeywrightError {
  return new KeywrightError(
    "timed_out",
    "Earlier writes of this account took too long; nothing was sent or charged for this one.",
    {},
    { retryAfterSeconds: 5 },
  );
}
