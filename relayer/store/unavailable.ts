import { KeywrightError } from "../../protocol/errors";
import { isStalePlan } from "./statementNames";

/**
 * SQLSTATEs of transient conditions: connection lost, out of resources, operator intervention, deadlock or
 * serialization conflict, lock or statement time-out, idle transaction time-out.
 */
const UNAVAILABLE_STATE = /^(08|53|57P|40001|40P01|55P03|57014|25P03)/;
const UNAVAILABLE_SYSTEM_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
  "EAI_AGAIN",
]);
const UNAVAILABLE_MESSAGES =
  /timeout exceeded when trying to connect|Connection terminated|not queryable|Query read timeout/i;

/** Maps "the database cannot be reached" to its error code (503, retryable) and returns every other error unchanged. */
export function translateUnavailable(error: unknown): unknown {
  return error instanceof Error && isUnavailable(error)
    ? new KeywrightError(
        "database_unavailable",
        "The database is unavailable at the moment; the same request may succeed later.",
        {},
        { cause: error, retryAfterSeconds: 5 },
      )
    : error;
}

function isUnavailable(error: Error & { code?: unknown }): boolean {
  const code = typeof error.code === "string" ? error.code : "";
  return (
    UNAVAILABLE_STATE.test(code) ||
    UNAVAILABLE_SYSTEM_CODES.has(code) ||
    UNAVAILABLE_MESSAGES.test(error.message) ||
    isStalePlan(error)
  );
}
