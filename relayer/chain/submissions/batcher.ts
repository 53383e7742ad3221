/**
 * Combines writes into transactions: those waiting when a lane becomes free share one nonce and one signature. An idle
 * service does not wait; a single write is sent as it is.
 */
import { MAX_BATCH_WRITES } from "../../../protocol/executor";
import { allBusy } from "../payers/lanes";
import type { SubmissionId, SubmitRequest } from "../types";
import { busyAccount } from "./accountQueue";
import { Batch, type Waiting } from "./batch";
import type { CarriedWrite } from "./rows";
import type { SendingParts } from "./transactionMonitor";

const GATHER_MS = 8;
const BETWEEN_LOOKS_MS = 25;
/** Of the event loop's time, what batches leave to everything else that it serves: runs foremost. */
const LEFT_TO_OTHERS = 1 / 3;
/** No batch waits longer for it: the loop may be busy with something else than writes. */
const MAX_PAUSE_MS = 250;
/** A batch does not wait for what the loop did longer ago. */
const RECENTLY_MS = 1_000;
/** Gas a lane must be able to pay for before a write's actual gas is known. */
const USUAL_WRITE_GAS = 200_000n;

export class Batcher {
  #waiting: Waiting[] = [];
  #isPumping = false;
  /** Transactions being prepared, and when the last one ended. */
  #preparing = 0;
  #lastEnd = 0;
  /** What the event loop had done when the last batch began. */
  #loop = performance.eventLoopUtilization();
  readonly #parts: SendingParts;

  constructor(parts: SendingParts) {
    this.#parts = parts;
    parts.outcomes.on("transaction", () => (this.#lastEnd = Date.now()));
  }

  /** The write, once a transaction carries it. Throws the reason if it fails before that, with nothing charged. */
  add(request: SubmitRequest, id: SubmissionId, deadline: number): Promise<CarriedWrite> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ request, id, deadline, since: Date.now(), alone: false, isHeld: undefined, resolve, reject });
    });
  }

  #enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    if (!this.#isPumping) void this.#pump();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    while (this.#waiting.length > 0) {
      await this.#gather();
      await this.#leaveTime();
      await this.#next();
    }
    this.#isPumping = false;
  }

  /** While other transactions are in progress, wait briefly for more writes. */
  async #gather(): Promise<void> {
    const now = Date.now();
    const isBusy = this.#preparing > 0 || this.#parts.monitor.watchedIds.length > 0;
    const isIdle = !isBusy && now - this.#lastEnd > GATHER_MS;
    const left = (this.#waiting[0]?.since ?? now) + GATHER_MS - now;
    if (!isIdle && left > 0 && this.#waiting.length < MAX_BATCH_WRITES) await pause(left);
  }

  /** Waits until the loop has been idle for a part of the time since the last batch, if that was a moment ago. */
  async #leaveTime(): Promise<void> {
    const { active, idle } = performance.eventLoopUtilization(this.#loop);
    const pauseMs = Math.min((active * LEFT_TO_OTHERS) / (1 - LEFT_TO_OTHERS) - idle, MAX_PAUSE_MS);
    if (pauseMs >= 1 && active + idle < RECENTLY_MS) await pause(pauseMs);
    this.#loop = performance.eventLoopUtilization();
  }

  /** Takes a lane and the writes waiting at that time. */
  async #next(): Promise<void> {
    const { fees, lanes } = this.#parts;
    try {
      const { maxFeePerGas } = await fees.now();
      const lane = await lanes.tryEnter(USUAL_WRITE_GAS * maxFeePerGas);
      if (lane === undefined) {
        await pause(BETWEEN_LOOKS_MS);
        const now = Date.now();
        return await this.#refuseAll(({ deadline }) => deadline <= now, allBusy());
      }
      this.#preparing += 1;
      const given = { lane, waiting: this.#nextOnes(), again: this.#again, refuse: this.#refuse };
      const batch = new Batch({ ...this.#parts, ...given });
      void batch.carryOut().finally(() => {
        this.#preparing -= 1;
        this.#lastEnd = Date.now();
      });
    } catch (error) {
      await this.#refuseAll(() => true, error);
    }
  }

  async #refuseAll(which: (waiting: Waiting) => boolean, error: unknown): Promise<void> {
    await Promise.all(this.#take(this.#waiting.filter(which)).map((waiting) => this.#refuse(waiting, error)));
  }

  /** Writes use `tryMulticall`, forward requests the forwarder: they never share a transaction. */
  #nextOnes(): readonly Waiting[] {
    const [first] = this.#waiting;
    if (first === undefined || first.alone) return this.#take(this.#waiting.slice(0, 1));
    const goesWithFirst = ({ alone, request }: Waiting): boolean =>
      !alone && "forward" in request === "forward" in first.request;
    return this.#take(this.#waiting.filter(goesWithFirst).slice(0, MAX_BATCH_WRITES));
  }

  #take(taken: readonly Waiting[]): readonly Waiting[] {
    this.#waiting = this.#waiting.filter((waiting) => !taken.includes(waiting));
    return taken;
  }

  readonly #again = async (waiting: Waiting, pauseMs: number): Promise<void> => {
    if (pauseMs > 0) await pause(pauseMs);
    if (Date.now() < waiting.deadline) this.#enqueue(waiting);
    else await this.#refuse(waiting, busyAccount());
  };

  /** Releases the write's reservation and rejects it. */
  readonly #refuse = async ({ id, isHeld, reject }: Waiting, error: unknown): Promise<void> => {
    if (isHeld === true) await this.#parts.hooks.onAbandon(id);
    reject(error);
  };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
