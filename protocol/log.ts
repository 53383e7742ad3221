/**
 * The services' log: JSON lines by pino, each with the request id. Bodies, headers, code, params, answers, keys and
 * e-mail addresses must not be logged. Members with such names are redacted in case they are, and error messages are
 * cut before the values that libraries quote in them.
 */
import { pino, type DestinationStream, type Logger } from "pino";
import { KeywrightError } from "./errors";
import { defined } from "./defined";

export type { Logger };

/** Members with secrets or personal data, at most two levels deep. */
const SECRET_MEMBERS = [
  "authorization",
  "apiKey",
  "api_key",
  "usage_api_key",
  "usageApiKey",
  "key",
  "secret",
  "token",
  "email",
  "client_secret",
  "clientSecret",
  "signature",
  "js_params",
  "params",
  "code",
  "credential",
];
const MAX_MESSAGE_CHARS = 500;
const MAX_CAUSES = 4;
const MAX_FRAMES = 12;

/** Maximum delay of a line, so that many share one write; the rest is written at exit. */
const FLUSH_MS = 100;

export function createLogger(
  level: string,
  service: string,
  destination: DestinationStream = bufferedStdout(),
): Logger {
  const options = {
    level,
    base: { service },
    serializers: { err: describeError },
    redact: { paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: "[redacted]" },
  };
  return pino(options, destination);
}

interface ErrorLine {
  type: string;
  message: string;
  /** The code of a named error or of the system (`ECONNREFUSED`). */
  errorCode?: string;
  stack?: string[];
  cause?: ErrorLine | string;
}

/**
 * Name, code, message and stack. Libraries quote the offending value in their messages after the first parenthesis, so
 * that part is cut.
 */
function describeError(error: unknown, depth = 0): ErrorLine | string {
  if (!(error instanceof Error)) return typeof error === "string" ? cut(error) : typeof error;
  const cause = error.cause === undefined || depth >= MAX_CAUSES ? undefined : describeError(error.cause, depth + 1);
  return {
    type: error.name,
    message: cut(error.message),
    ...("code" in error && typeof error.code === "string" ? { errorCode: error.code } : {}),
    ...(error instanceof KeywrightError && error.code !== "internal_error" ? {} : { stack: frames(error) }),
    ...defined({ cause }),
  };
}

function cut(message: string): string {
  return (message.split(" (")[0] ?? "").slice(0, MAX_MESSAGE_CHARS);
}

function frames(error: Error): string[] {
  const lines = (error.stack ?? "").split("\n").map((line) => line.trim());
  return lines.filter((line) => line.startsWith("at ")).slice(0, MAX_FRAMES);
}

function bufferedStdout(): DestinationStream {
  const stdout = pino.destination({ sync: false, minLength: 4_096 });
  setInterval(() => stdout.flush(), FLUSH_MS).unref();
  return stdout;
}
