/** Standard error of a process that ended, made safe to log: truncated, and without text that may be user data. */

const MAX_CHARS = 2_000;
/** Quoted text, except file paths and error codes. */
const QUOTED = /(["'`])(?!(?:\/[\w./@-]{1,200}|E[A-Z_]{2,40})\1)(?:(?!\1).)+\1/g;
const LONG_TOKENS = /\b(?:0x)?[0-9a-fA-F]{16,}\b|[A-Za-z0-9+_-]{32,}={0,2}/g;

export function redactedStderr(stderr: string): string {
  return stderr.replace(QUOTED, "[redacted]").replace(LONG_TOKENS, "[redacted]").trim().slice(0, MAX_CHARS);
}
