/** The thread of startWatchdog. */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import type { Watched } from "./watchdog";

const { intervalMs, patience, turns } = workerData as Watched;
let seen = 0;
let looks = 0;

setInterval(() => {
  const now = Atomics.load(turns, 0);
  looks = now === seen ? looks + 1 : 0;
  seen = now;
  if (looks <= patience) return;
  // The logger needs the blocked event loop.
  writeSync(
    1,
    `${JSON.stringify({ level: 60, time: Date.now(), service: "keyholder", msg: "the event loop does not answer; ending the process" })}\n`,
  );
  process.kill(process.pid, "SIGKILL");
}, intervalMs);
