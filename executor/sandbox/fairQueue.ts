/** Decides which run is next. Accounts take turns; none holds more than its share of the slots or of the queue. */
import { QueueFull } from "./types";

export interface FairQueueOptions {
  /** Concurrent runs. */
  slots: number;
  /** Waiting runs of all accounts; one account may hold half. */
  capacity: number;
}

interface Line<T> {
  waiting: T[];
  running: number;
}

const MAX_RETRY_SECONDS = 60;

export class FairQueue<T> {
  /** Insertion order is the order of turns: an account that was served moves to the end. */
  readonly #lines = new Map<string, Line<T>>();
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
  #shareOfSlots({ running }: Line<T>): number {
    const left = this.#options.slots - (this.running - running);
    return Math.max(1, Math.floor(left / 2));
  }

  get #shareOfQueue(): number {
    return Math.max(1, Math.floor(this.#options.capacity / 2));
  }

  /** Throws QueueFull. */
  add(account: string, item: T): void {
    const line = this.#lines.get(account) ?? { waiting: [], running: 0 };
    if (this.waiting >= this.#options.capacity || line.waiting.length >= this.#shareOfQueue)
      throw new QueueFull(this.#retryAfterSeconds());
    line.waiting.push(item);
    this.#lines.set(account, line);
    this.waiting++;
  }

  /** The next item that may run, counted as running from now on; undefined when there is none. */
  take(): T | undefined {
    if (this.running >= this.#options.slots) return undefined;
    for (const [account, line] of this.#lines) {
      if (line.waiting.length === 0 || line.running >= this.#shareOfSlots(line)) continue;
      this.#lines.delete(account);
      this.#lines.set(account, line);
      line.running++;
      this.running++;
      this.waiting--;
      return line.waiting.shift();
    }
    return undefined;
  }

  /** Ends a taken item. */
  done(account: string, durationMs: number): void {
    const line = this.#lines.get(account);
    if (!line) return;
    line.running--;
    this.running--;
    this.#meanRunMs = this.#meanRunMs * 0.9 + durationMs * 0.1;
    this.#forgetIfIdle(account, line);
  }

  /** Removes a waiting item; false when it is not waiting (any more). */
  remove(account: string, item: T): boolean {
    const line = this.#lines.get(account);
    const at = line?.waiting.indexOf(item) ?? -1;
    if (!line || at === -1) return false;
    line.waiting.splice(at, 1);
    this.waiting--;
    this.#forgetIfIdle(account, line);
    return true;
  }

  /** Empties the queue and returns the items that waited. */
  drain(): T[] {
    const items = [...this.#lines.values()].flatMap((line) => line.waiting.splice(0));
    this.waiting = 0;
    return items;
  }

  #forgetIfIdle(account: string, line: Line<T>): void {
    if (line.waiting.length === 0 && line.running === 0) this.#lines.delete(account);
  }

  #retryAfterSeconds(): number {
    const seconds = (this.waiting * this.#meanRunMs) / this.#options.slots / 1_000;
    return Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(seconds)));
  }
}
