/** CIDs of code that clients send, computed beside the thread that serves everybody where the code is large. */
import { CidComputer } from "../protocol/cidComputer";
import { KeywrightError } from "../protocol/errors";
import type { Cid } from "../protocol/ids";

/** As many large codes may wait for the one thread that hashes them. */
const MOST_WAITING = 32;

/** The thread does not keep the process alive. */
export function cidsBeside(): (code: string) => Promise<Cid> {
  const computer = new CidComputer();
  return async (code) => {
    if (computer.waiting >= MOST_WAITING) {
      throw new KeywrightError("queue_full", "Too much code is being hashed at the moment; nothing was charged.", {}, { retryAfterSeconds: 2 });
    }
    return computer.of(Buffer.from(code));
  };
}
