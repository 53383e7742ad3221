/** The relayer's log: JSON lines by pino. Bodies, headers, keys and e-mail addresses are never given to it; what slips through by name is redacted. */
import { destination, pino, type DestinationStream, type Logger } from "pino";

const SECRET_NAMES = [
  "authorization",
  "apiKey",
  "api_key",
  "usage_api_key",
  "usageApiKey",
  "key",
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

/** Lines wait this long at most, so that many share one write; an orderly end writes out what is left. */
const FLUSH_MS = 100;

export type { Logger };

export function createLogger(options: { level: string; service?: string }): Logger {
  const settings = {
    level: options.level,
    base: { service: options.service ?? "relayer" },
    redact: { paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: "[redacted]" },
    serializers: { err: serializeError },
  };
  return pino(settings, bufferedStdout());
}

function bufferedStdout(): DestinationStream {
  const stdout = destination({ sync: false, minLength: 4_096 });
  setInterval(() => stdout.flush(), FLUSH_MS).unref();
  return stdout;
}

/** Name, message and stack of an error and its causes; not its own properties, which libraries fill with requests and responses. */
export function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const cause = error.cause === undefined ? {} : { cause: serializeError(error.cause) };
  const code = "code" in error && typeof error.code === "string" ? { errorCode: error.code } : {};
  return { name: error.name, message: error.message, stack: error.stack, ...code, ...cause };
}
