/** Whether a keyholder answers at all, asked from outside: a process that was stopped as a whole cannot end itself. */
import { request } from "node:http";
import { EXECUTOR_CALLS } from "../protocol/executor";

/** Status of the answer; undefined when none came in time. Rejects when nobody listens there. */
export function statusOf(socketPath: string, method: "GET" | "POST", timeoutMs: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const asked = request({ socketPath, path: EXECUTOR_CALLS.ready.path, method, headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    const timer = setTimeout(() => (resolve(undefined), asked.destroy()), timeoutMs);
    asked.once("close", () => clearTimeout(timer));
    asked.once("error", reject);
    asked.end(method === "POST" ? "{}" : undefined);
  });
}

/**
 * True when a keyholder that listens gives no answer of any kind, several times in a row. It is asked for what it
 * refuses at once: an answer that waits for the chain says nothing about the process.
 */
export async function isSilent(socketPath: string, { tries = 3, timeoutMs = 3_000 } = {}): Promise<boolean> {
  for (let asked = 0; asked < tries; asked++) {
    const status = await statusOf(socketPath, "GET", timeoutMs).catch(() => 0);
    if (status !== undefined) return false;
  }
  return true;
}
