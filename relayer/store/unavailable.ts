import { KeywrightError } from "../../protocol/errors";

/**
 * SQLSTATEs that speak of the moment and not of the statement: connection lost, out of resources, operator intervention; a deadlock or conflict between
 * transactions, a lock or statement that took too long, a transaction that was idle too long.
 */
const UNAVAILABLE_STATE = /^(08|53|57P|40001|40P01|55P03|57014|25P03)/;
const UNAVAILABLE_SYSTEM_CODES = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "ENOTFOUND", "EPIPE", "ETIMEDOUT", "EAI_AGAIN"]);
const UNAVAILABLE_MESSAGES = /timeout exceeded when trying to connect|Connection terminated|not queryable|Query read timeout/i;

/** Turns "the database cannot be reached" into its named error (503, worth a retry) and leaves every other error as it is. */
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
  return UNAVAILABLE_STATE.test(code) || UNAVAILABLE_SYSTEM_CODES.has(code) || UNAVAILABLE_MESSAGES.test(error.message);
}
