/** Decides which run is next: round-robin by account, none above its share of the slots or of the queue. */
import { QueueFull } from "./types";

export interface FairQueueOptions {
  /** Concurrent runs. */
  slots: number;
  /** Waiting runs of all accounts; one account may hold half. */
  capacity: number;
}

interface AccountQueue<T> {
  waiting: T[];
  running: number;
}

const MAX_RETRY_SECONDS = 60;

export class FairQueue<T> {
  /** Insertion order is the round-robin order: an account that was served moves to the end. */
  readonly #queues = new Map<string, AccountQueue<T>>();
  #meanRunMs = 50;
  running = 0;
  waiting = 0;
  readonly #options: FairQueueOptions;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /**
   * Half of what the other accounts leave: one alone never holds more than half, and two never hold all of four slots
   * or more.
   */
  #shareOfSlots({ running }: AccountQueue<T>): number {
    const left = this.#options.slots - (this.running - running);
    return Math.max(1, Math.floor(left / 2));
  }

  get #shareOfQueue(): number {
    return Math.max(1, Math.floor(this.#options.capacity / 2));
  }

  /** Throws QueueFull. */
  add(account: string, item: T): void {
    const queue = this.#queues.get(account) ?? { waiting: [], running: 0 };
    if (this.waiting >= this.#options.capacity || queue.waiting.length >= this.#shareOfQueue)
      throw new QueueFull(this.#retryAfterSeconds());
    queue.waiting.push(item);
    this.#queues.set(account, queue);
    this.waiting++;
  }

  /** The next item that may run, counted as running from now on; undefined when there is none. */
  take(): T | undefined {
    if (this.running >= this.#options.slots) return undefined;
    for (const [account, queue] of this.#queues) {
      if (queue.waiting.length === 0 || queue.running >= this.#shareOfSlots(queue)) continue;
      this.#queues.delete(account);
      this.#queues.set(account, queue);
      queue.running++;
      this.running++;
      this.waiting--;
      return queue.waiting.shift();
    }
    return undefined;
  }

  /** Ends a taken item. */
  done(account: string, durationMs: number): void {
    const queue = this.#queues.get(account);
    if (!queue) return;
    queue.running--;
    this.running--;
    this.#meanRunMs = this.#meanRunMs * 0.9 + durationMs * 0.1;
    this.#forgetIfIdle(account, queue);
  }

  /** Removes a waiting item; false when it is not waiting (any more). */
  remove(account: string, item: T): boolean {
    const queue = this.#queues.get(account);
    const at = queue?.waiting.indexOf(item) ?? -1;
    if (!queue || at === -1) return false;
    queue.waiting.splice(at, 1);
    this.waiting--;
    this.#forgetIfIdle(account, queue);
    return true;
  }

  /** Empties the queue and returns the items that waited. */
  drain(): T[] {
    const items = [...this.#queues.values()].flatMap((queue) => queue.waiting.splice(0));
    this.waiting = 0;
    return items;
  }

  #forgetIfIdle(account: string, queue: AccountQueue<T>): void {
    if (queue.waiting.length === 0 && queue.running === 0) this.#queues.delete(account);
  }

  #retryAfterSeconds(): number {
    const seconds = (this.waiting * this.#meanRunMs) / this.#options.slots / 1_000;
    return Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(seconds)));
  }
}
