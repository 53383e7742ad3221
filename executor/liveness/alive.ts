/** Checks from outside whether a keyholder answers: a stopped process cannot end itself. */
import { request } from "node:http";
import { EXECUTOR_CALLS } from "../../protocol/executor";

/** Status of the answer; undefined when none came in time. Rejects when no process listens there. */
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
 * True when a listening keyholder gives no answer, several times in a row. The request is one that it refuses at once:
 * an answer that depends on the chain would not tell whether the process works.
 */
export async function isSilent(socketPath: string, { tries = 3, timeoutMs = 3_000 } = {}): Promise<boolean> {
  for (let asked = 0; asked < tries; asked++) {
    const status = await statusOf(socketPath, "GET", timeoutMs).catch(() => 0);
    if (status !== undefined) return false;
  }
  return true;
}
