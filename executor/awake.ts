/** To wake a process takes longer than most ops. One that expects a message soon keeps its loop running meanwhile. */

/** How long a child waits so for the answer to an op, and the keyholder for the next op. It is not billed. */
export const AWAKE_MS = 0.3;

export class Awake {
  #until = 0;
  #isRunning = false;

  stay(): void {
    this.#until = performance.now() + AWAKE_MS;
    if (!this.#isRunning) this.#turn();
  }

  /** The message is here. */
  end(): void {
    this.#until = 0;
  }

  readonly #turn = (): void => {
    this.#isRunning = performance.now() < this.#until;
    if (this.#isRunning) setImmediate(this.#turn);
  };
}
