import { setTimeout as sleep } from "node:timers/promises";

/** Maximum wait for the current turn when stopping; closing its dependencies aborts it. */
const MAX_STOP_MS = 5_000;

/** Part of the time between two turns that is left to chance: tasks that begin together would always queue together. */
const CHANCE = 1 / 5;

/**
 * Repeats a task, never concurrently: the next turn begins about `everyMs` after the last has ended. Failures are
 * reported and do not stop it.
 */
export class PeriodicTask {
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;
  readonly #work: () => Promise<unknown>;
  readonly #everyMs: number;
  readonly #onError: (error: unknown) => void;

  constructor(work: () => Promise<unknown>, everyMs: number, onError: (error: unknown) => void) {
    this.#work = work;
    this.#everyMs = everyMs;
    this.#onError = onError;
  }

  /** The first turn begins immediately. */
  start(): void {
    this.#turn = this.#run();
  }

  /** Begins the next turn now; without effect during a turn. */
  hurry(): void {
    if (this.#timer === undefined || this.#stopped) return;
    clearTimeout(this.#timer);
    this.#turn = this.#run();
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    try {
      await this.#work();
    } catch (error) {
      if (!this.#stopped) this.#onError(error);
    }
    if (this.#stopped) return;
    this.#timer = setTimeout(
      () => {
        this.#turn = this.#run();
      },
      this.#everyMs * (1 + CHANCE * (Math.random() - 1 / 2)),
    );
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await Promise.race([this.#turn, sleep(MAX_STOP_MS, undefined, { ref: false })]);
  }
}
