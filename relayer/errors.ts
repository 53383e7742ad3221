/**
 * Maps thrown errors to the client's response. Unknown errors get one fixed sentence; their cause goes to the log only.
 */
import { KeywrightError } from "../protocol/errors";
import { translateUnavailable } from "./store/unavailable";

const INTERNAL_DETAIL = new KeywrightError(
  "internal_error",
  "The service failed; the request needs no change. Include the request id when you report this.",
);
const DEFAULT_RETRY_AFTER_SECONDS = 5;

/** The API error for anything thrown. */
export function asKeywrightError(thrown: unknown): KeywrightError {
  const error = translateUnavailable(thrown);
  return error instanceof KeywrightError ? error : INTERNAL_DETAIL;
}

export const isInternal = (error: KeywrightError): boolean => error.code === "internal_error";

/** Seconds for `Retry-After`, on every response that a retry may improve. */
export function retryAfterOf(error: KeywrightError): number | undefined {
  if (error.retryAfterSeconds !== undefined) return Math.max(1, Math.ceil(error.retryAfterSeconds));
  return error.retryable ? DEFAULT_RETRY_AFTER_SECONDS : undefined;
}
