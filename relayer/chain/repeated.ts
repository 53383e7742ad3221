import type { Logger } from "pino";

/** Work done again and again, never twice at once; a failure is logged and the next round tries again. */
export class Repeated {
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    private readonly name: string,
    private readonly everyMs: number,
    private readonly log: Logger,
    private readonly work: () => Promise<void>,
  ) {}

  start(): void {
    this.#round = this.#once();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  async #once(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      if (!this.#stopped) this.log.warn({ err: error, work: this.name }, "background work failed; it is tried again");
    }
    if (!this.#stopped) this.#timer = setTimeout(() => this.start(), this.everyMs);
  }
}
