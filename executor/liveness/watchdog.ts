/**
 * Ends this process when its event loop is blocked, which blocks all requests and which the process cannot detect
 * itself. A thread checks every second whether the loop still runs; the supervisor (container, development stack)
 * restarts the process.
 */
import { Worker } from "node:worker_threads";
import { built } from "../built";

export interface WatchdogOptions {
  /** Interval of the checks. */
  intervalMs?: number;
  /**
   * Consecutive checks without an iteration of the loop before the process is ended. A count, not a time: no checks
   * happen while the machine is suspended.
   */
  patience?: number;
}

/** Watches until the process exits, without keeping it alive. */
export function startWatchdog({ intervalMs = 1_000, patience = 10 }: WatchdogOptions = {}): void {
  const ticks = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(ticks, 0, 1), intervalMs / 2).unref();
  const workerData: Watched = { intervalMs, patience, ticks };
  const thread = new Worker(built("liveness/watchdogThread.js"), {
    env: {},
    execArgv: [],
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: 8 },
  });
  // Without the thread the process only runs unwatched.
  thread.on("error", () => undefined);
  thread.unref();
}

export interface Watched {
  intervalMs: number;
  patience: number;
  /** Incremented while the loop runs. */
  ticks: Int32Array;
}
