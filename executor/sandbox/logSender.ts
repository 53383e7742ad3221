/**
 * Sends a guest's log lines: the first ones at once, so that none is lost however the process ends; later ones in small
 * batches, so that a flood costs the keyholder little.
 */

const SENT_AT_ONCE = 256;
const BATCH_MS = 2;
const BATCH_CHARS = 16_384;

export class LogSender {
  #sent = 0;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;
  readonly #send: (text: string) => void;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  add(text: string): void {
    this.#waiting += text;
    if (++this.#sent <= SENT_AT_ONCE || this.#waiting.length >= BATCH_CHARS) return this.flush();
    this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting === "") return;
    const text = this.#waiting;
    this.#waiting = "";
    this.#send(text);
  }
}
