/**
 * Combines writes into transactions. Writes waiting when a lane becomes free are batched: each is simulated, reserved
 * and authorized individually, and those that remain share one nonce and one signature. An idle service does not wait;
 * a single write is sent as it is.
 */
import { MAX_BATCH_WRITES } from "../../../protocol/executor";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle } from "../payers/fees";
import { allBusy, type Lane, type Lanes } from "../payers/lanes";
import type { ExecutorPort, SubmissionHooks, SubmissionId, SubmitRequest } from "../types";
import type { RpcClient } from "../rpc/client";
import { busyAccount, type AccountQueue } from "./accountQueue";
import { authorize, Preparation } from "./preparation";
import type { OutcomeFeed } from "./outcomeWatch";
import { writesOf, type CarriedWrite, type Carrier } from "./rows";
import type { Simulation } from "./simulation";
import type { TransactionMonitor } from "./transactionMonitor";
import type { Transactions } from "./transactions";
import {
  goTogether,
  newWriteOf,
  signerOf,
  TakenWrites,
  turnKeysOf,
  type AuthorizedWrite,
  type WriteInTurn,
  type SimulatedWrite,
  type Waiting,
} from "./waitingWrites";

/** Another write has used the idempotency key. */
export class RepeatedKey extends Error {
  override readonly name = "RepeatedKey";
}

export interface BatcherOptions {
  readonly transactions: Transactions;
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

const GATHER_MS = 8;
const BUSY_PAUSE_MS = 50;
const BETWEEN_LOOKS_MS = 25;
/** Gas a lane must be able to pay for before a write's actual gas is known. */
const USUAL_WRITE_GAS = 200_000n;

export class Batcher {
  #waiting: Waiting[] = [];
  #isPumping = false;
  /** Transactions being prepared, and when the last one ended. */
  #preparing = 0;
  #lastEnd = 0;
  #wakeUp: () => void = () => undefined;
  readonly #options: BatcherOptions;

  constructor(options: BatcherOptions) {
    this.#options = options;
    options.outcomes.onTransaction(() => (this.#lastEnd = Date.now()));
  }

  /** The write, once a transaction carries it. Throws the reason if it fails before that, with nothing charged. */
  add(request: SubmitRequest, id: SubmissionId, deadline: number): Promise<CarriedWrite> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ request, id, deadline, since: Date.now(), alone: false, held: false, resolve, reject });
    });
  }

  #enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    if (this.#waiting.length >= MAX_BATCH_WRITES) this.#wakeUp();
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
    const isBusy = this.#preparing > 0 || this.#options.monitor.watchedIds.length > 0;
    const isIdle = !isBusy && now - this.#lastEnd > GATHER_MS;
    const left = (this.#waiting[0]?.since ?? now) + GATHER_MS - now;
    if (isIdle || left <= 0 || this.#waiting.length >= MAX_BATCH_WRITES) return;
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
      const { maxFeePerGas } = await this.#options.fees.now();
      const lane = await this.#options.lanes.tryEnter(USUAL_WRITE_GAS * maxFeePerGas);
      if (lane === undefined) return await this.#waitForRoom();
      const taken = this.#take();
      this.#preparing += 1;
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
    const taken = first.alone ? [first] : company.slice(0, MAX_BATCH_WRITES);
    const isTaken = new Set(taken);
    this.#waiting = this.#waiting.filter((waiting) => !isTaken.has(waiting));
    return taken;
  }

  async #carryOut(entered: Lane, waiting: readonly Waiting[]): Promise<void> {
    const taken = new TakenWrites(waiting, {
      again: (write) => this.#again(write),
      refuse: (write, error) => this.#refuse(write, error),
    });
    let lane = entered;
    let carrier: Carrier | undefined;
    try {
      const batch = new Preparation({ ...this.#options, lane, taken });
      const made = await batch.make(await this.#inTurn(taken));
      const { tried, gasLimit } = await batch.bound(await batch.simulate(made), made.length === 1);
      if (tried.length === 0) return;
      lane = await this.#laneThatPays(lane, gasLimit, tried);
      const authorized = await authorize(this.#options.executor, await this.#hold(tried, taken), taken);
      if (authorized.length > 0) carrier = await this.#store(lane, gasLimit, authorized, taken);
    } catch (error) {
      await taken.dropAll(error);
    } finally {
      this.#preparing -= 1;
      this.#lastEnd = Date.now();
      if (carrier === undefined) this.#options.lanes.leave(lane.payer);
      else this.#options.lanes.begin(lane.payer);
    }
  }

  /**
   * Keeps the writes whose accounts and signers have no write in progress on any instance; the others are requeued
   * shortly.
   */
  async #inTurn(taken: TakenWrites): Promise<readonly WriteInTurn[]> {
    const turns = new Map(await this.#options.queue.turnsOf(taken.all.flatMap(({ request }) => turnKeysOf(request))));
    return taken.all.flatMap((waiting): WriteInTurn[] => {
      const { request } = waiting;
      const [turn, signersTurn] = turnKeysOf(request).map((key) => turns.get(key));
      const signer = signerOf(request);
      if (turn !== undefined && (signer === undefined || signersTurn !== undefined)) {
        // One request per signer and batch: the signer's next request needs the following nonce.
        if (signer !== undefined) turns.delete(signer);
        return [{ waiting, turn, signersTurn }];
      }
      taken.leave(waiting);
      setTimeout(() => this.#again(waiting), BUSY_PAUSE_MS);
      return [];
    });
  }

  #again(waiting: Waiting): void {
    if (Date.now() < waiting.deadline) this.#enqueue(waiting);
    else void this.#refuse(waiting, busyAccount());
  }

  async #laneThatPays(lane: Lane, gasLimit: bigint, tried: readonly SimulatedWrite[]): Promise<Lane> {
    const { lanes, fees } = this.#options;
    const cost = gasLimit * (await fees.now()).maxFeePerGas;
    if (lane.balanceWei >= cost) return lane;
    const other = await lanes.enter(cost, Math.min(...tried.map(({ waiting }) => waiting.deadline)));
    lanes.leave(lane.payer);
    return other;
  }

  async #hold(tried: readonly SimulatedWrite[], taken: TakenWrites): Promise<readonly SimulatedWrite[]> {
    return taken.each(tried, async (item) => {
      if (!item.waiting.held) await item.waiting.request.reserve?.(item.waiting.id);
      item.waiting.held = true;
      return item;
    });
  }

  /** Stores the writes under one nonce; undefined when every write missed its turn or the lane is draining. */
  async #store(
    lane: Lane,
    gasLimit: bigint,
    authorized: readonly AuthorizedWrite[],
    taken: TakenWrites,
  ): Promise<Carrier | undefined> {
    const { transactions, monitor } = this.#options;
    const didNotBegin = new Map(authorized.map(({ waiting }) => [waiting, waiting.request.operation?.begins()]));
    const begun = { payer: lane.payer, gasLimit, writes: authorized.map(newWriteOf) };
    const carrier = await transactions.begin(begun).catch(noneIfRepeated);
    if (carrier !== undefined) monitor.watch(carrier.transaction, carrier.writes);
    const stored = new Map((carrier === undefined ? [] : writesOf(carrier)).map((write) => [write.id, write]));
    for (const { waiting } of authorized) {
      taken.leave(waiting);
      const write = stored.get(waiting.id);
      if (write !== undefined) {
        waiting.resolve(write);
        continue;
      }
      didNotBegin.get(waiting)?.();
      void this.#retry(waiting);
    }
    return carrier;
  }

  /** Queues it again after a missed turn, unless its idempotency key was used meanwhile. */
  async #retry(waiting: Waiting): Promise<void> {
    const { idempotencyKey } = waiting.request;
    try {
      if (
        idempotencyKey !== undefined &&
        (await this.#options.transactions.byIdempotencyKey(idempotencyKey)) !== undefined
      )
        throw new RepeatedKey();
      this.#again(waiting);
    } catch (error) {
      await this.#refuse(waiting, error);
    }
  }

  /** Releases the write's reservation and rejects it. */
  async #refuse({ request, id, held, reject }: Waiting, error: unknown): Promise<void> {
    if (held && request.reserve !== undefined) await this.#options.hooks.onAbandon(id);
    reject(error);
  }
}

/** Another relayer stored a write with the same idempotency key at the same moment. */
function noneIfRepeated(error: unknown): undefined {
  if ((error as { constraint?: unknown }).constraint === "writes_idempotency_key_key") return undefined;
  throw error;
}
