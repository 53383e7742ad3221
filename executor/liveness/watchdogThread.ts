/** The thread of startWatchdog. */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import type { Watched } from "./watchdog";

const { intervalMs, patience, ticks } = workerData as Watched;
let seen = 0;
let missedTicks = 0;

setInterval(() => {
  const now = Atomics.load(ticks, 0);
  missedTicks = now === seen ? missedTicks + 1 : 0;
  seen = now;
  if (missedTicks <= patience) return;
  // The logger needs the blocked event loop.
  const msg = "the event loop does not answer; ending the process";
  writeSync(1, `${JSON.stringify({ level: 60, time: Date.now(), service: "keyholder", msg })}\n`);
  process.kill(process.pid, "SIGKILL");
}, intervalMs);
