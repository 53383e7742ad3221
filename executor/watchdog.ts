/**
 * Ends this process when its event loop does not answer. The keyholder serves everybody on one loop: whatever holds it holds everybody, and a process that is
 * held cannot help itself. A thread of its own looks every second whether it still turns; whoever started the process starts it again (container, development stack).
 */
import { Worker } from "node:worker_threads";
import { built } from "./built";

export interface WatchdogOptions {
  /** How often the thread looks. */
  intervalMs?: number;
  /** More looks than this without a turn of the loop end the process. Counted and not timed: on a machine that was suspended nobody has looked. */
  patience?: number;
}

/** Watches until the process ends, and does not keep it alive. */
export function startWatchdog({ intervalMs = 1_000, patience = 10 }: WatchdogOptions = {}): void {
  const turns = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(turns, 0, 1), intervalMs / 2).unref();
  const workerData: Watched = { intervalMs, patience, turns };
  const thread = new Worker(built("watchdogThread.js"), { env: {}, execArgv: [], workerData, resourceLimits: { maxOldGenerationSizeMb: 8 } });
  // Without the thread the process is as before: nothing watches, nothing is ended.
  thread.on("error", () => undefined);
  thread.unref();
}

export interface Watched {
  intervalMs: number;
  patience: number;
  /** Counts up while the loop turns. */
  turns: Int32Array;
}
