/** Sends what a guest logs: line by line at first, so that no end of the process loses any; in small batches once there are many, so that a flood costs the keyholder little. */

const SENT_AT_ONCE = 256;
const BATCH_MS = 2;
const BATCH_CHARS = 16_384;

export class LogSender {
  private sent = 0;
  private waiting = "";
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly send: (text: string) => void) {}

  add(text: string): void {
    this.waiting += text;
    if (++this.sent <= SENT_AT_ONCE || this.waiting.length >= BATCH_CHARS) return this.flush();
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.waiting === "") return;
    const text = this.waiting;
    this.waiting = "";
    this.send(text);
  }
}
