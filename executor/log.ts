/**
 * The executor's log: JSON lines, the request id on each, and nothing that was ever a secret. Code, params, answers and guests' logs are never handed to it;
 * what might slip into an error is cut off here.
 */
import { pino, type DestinationStream, type Logger } from "pino";
import { KeywrightError } from "../protocol/errors";

/** Members that hold secrets in our messages, wherever they stand. */
const SECRET_MEMBERS = ["key", "token", "credential", "apiKey", "usageApiKey", "secret", "signature", "params", "code", "authorization"];
const MAX_MESSAGE_CHARS = 500;
const MAX_CAUSES = 4;

/** Lines wait this long at most: one write for many of them. The end of the process, also by a fault of its own, writes what is left. */
const FLUSH_MS = 100;

export function createLogger(level: string, destination: DestinationStream = bufferedStdout()): Logger {
  const options = {
    level,
    base: { process: "keyholder" },
    serializers: { err: describeError },
    redact: { paths: SECRET_MEMBERS.flatMap((name) => [`request.${name}`, `*.request.${name}`, `body.${name}`]), censor: "[redacted]" },
  };
  return pino(options, destination);
}

interface ErrorLine {
  type: string;
  message: string;
  code?: string;
  stack?: string[];
  cause?: ErrorLine | string;
}

/** Name, code, first sentence and where it happened. Libraries quote the offending value in their messages (behind the first parenthesis), so that part goes. */
export function describeError(error: unknown, depth = 0): ErrorLine | string {
  if (!(error instanceof Error)) return typeof error === "string" ? cut(error) : typeof error;
  const cause = error.cause === undefined || depth >= MAX_CAUSES ? undefined : describeError(error.cause, depth + 1);
  return {
    type: error.name,
    message: cut(error.message),
    ...(error instanceof KeywrightError ? { code: error.code } : { stack: frames(error) }),
    ...(cause === undefined ? {} : { cause }),
  };
}

function cut(message: string): string {
  return (message.split(" (")[0] ?? "").slice(0, MAX_MESSAGE_CHARS);
}

function frames(error: Error): string[] {
  const lines = (error.stack ?? "").split("\n").map((line) => line.trim());
  return lines.filter((line) => line.startsWith("at ")).slice(0, 12);
}

function bufferedStdout(): DestinationStream {
  const stdout = pino.destination({ sync: false, minLength: 4_096 });
  setInterval(() => stdout.flush(), FLUSH_MS).unref();
  return stdout;
}
