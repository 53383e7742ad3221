/** The container's healthcheck: exits with 0 when the executor answers that it is ready. One that does not answer at all is ended by its own watchdog. */
import { request } from "node:http";
import { EXECUTOR_CALLS } from "../protocol/executor";

const TIMEOUT_MS = 5_000;

const socketPath = process.argv[2];
if (socketPath === undefined) {
  process.stderr.write("usage: healthcheck.js <the executor's socket>\n");
  process.exit(2);
}
const asked = request(
  { socketPath, path: EXECUTOR_CALLS.ready.path, method: "POST", timeout: TIMEOUT_MS, headers: { "content-type": "application/json" } },
  (answer) => process.exit(answer.statusCode === 200 ? 0 : 1),
);
asked.on("timeout", () => process.exit(1));
asked.on("error", () => process.exit(1));
asked.end("{}");
