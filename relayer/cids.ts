/** Computes CIDs of code sent by clients; large code is hashed in a worker thread. */
import { CidComputer } from "../protocol/cidComputer";
import { KeywrightError } from "../protocol/errors";
import type { Cid } from "../protocol/ids";

/** Maximum number of large codes waiting for the hashing thread. */
const MAX_WAITING = 32;

/** The worker thread does not keep the process alive. */
export function cidsBeside(): (code: string) => Promise<Cid> {
  const computer = new CidComputer();
  return async (code) => {
    if (computer.waiting >= MAX_WAITING) {
      throw new KeywrightError(
        "queue_full",
        "Too much code is being hashed at the moment; nothing was charged.",
        {},
        { retryAfterSeconds: 2 },
      );
    }
    return computer.of(code);
  };
}
