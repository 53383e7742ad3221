/**
 * Turns on the event loop that all requests share. A run may request a hundred signatures at once: one is made at a
 * time, whoever has used the loop least is next, and after each the loop is left to other work for at least as long.
 */
import { setImmediate, setTimeout } from "node:timers/promises";
import { FairShare, inScope } from "../protocol/fairShare";

const NO_PAUSE_BELOW_MS = 1;

/** One event loop, so one instance. Nothing is kept free: a turn is over before anyone notices. */
const loop = new FairShare({ total: 1, unit: 0 });

/**
 * Runs `work` on its account's next turn, and not at all if the signal is aborted first. What it leaves to be awaited
 * is not part of the turn.
 */
export function inTurn<T>(account: string, work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const turn = inScope(account, signal, async (scope) => {
      await scope.take(loop);
      const startedAt = performance.now();
      try {
        resolve(work());
      } catch (error) {
        reject(error as Error);
      }
      const spentMs = performance.now() - startedAt;
      await (spentMs < NO_PAUSE_BELOW_MS ? setImmediate() : setTimeout(spentMs));
    });
    turn.catch(reject);
  });
}
