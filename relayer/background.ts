import { setTimeout as sleep } from "node:timers/promises";

/** How long `stop` waits for a turn under way; one that hangs on another service is cut off by what it uses being closed. */
const LONGEST_FAREWELL_MS = 5_000;

/** Repeats a piece of work: the next turn begins a while after the last has ended, a failure is told and does not end it. */
export class Repeating {
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly everyMs: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** The first turn begins at once. */
  start(): void {
    this.#turn = this.#run();
  }

  async #run(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      this.onError(error);
    }
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#turn = this.#run();
    }, this.everyMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await Promise.race([this.#turn, sleep(LONGEST_FAREWELL_MS, undefined, { ref: false })]);
  }
}
