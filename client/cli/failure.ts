/** How the program ends: exit codes, and errors as people and programs read them. */
import { CommanderError } from "commander";
import { ClientError, WrongUse } from "../errors";
import { jsonText, oneLine } from "./text";
import { defined } from "../../protocol/defined";

export const EXIT = { ok: 0, refused: 1, wrongUse: 2, unreachable: 3, actionFailed: 4 } as const;
export const EXIT_TEXT =
  "Exit codes: 0 done, 1 refused, 2 usage error, 3 not reached or a retry may succeed, 4 the action ran and failed; " +
  "verify and receipt have their own";

/** Of the commands whose exit code is a verdict, where 2 says that the service is simulated. */
export const VERIFIERS_WRONG_USE = 4;
const VERIFIERS: ReadonlySet<string | undefined> = new Set(["verify", "receipt"]);

/** The exit code for a wrong command line of this command. */
export const wrongUseOf = (command: string | undefined): number =>
  VERIFIERS.has(command) ? VERIFIERS_WRONG_USE : EXIT.wrongUse;

/** Thrown by a command that has printed its own output and sets its exit code. */
export class Ended extends Error {
  constructor(readonly exitCode: number) {
    super(`ended with ${exitCode}`);
  }
}

export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly request_id?: string;
  readonly facts?: Readonly<Record<string, unknown>>;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CommanderError) return { exitCode: EXIT.wrongUse, code: "wrong_use", message: usageText(error) };
  if (error instanceof WrongUse) return { exitCode: EXIT.wrongUse, code: "wrong_use", message: error.message };
  if (error instanceof ClientError) {
    const { code, message, status, requestId, retryable, facts } = error;
    const exitCode = code === "invalid_argument" ? EXIT.wrongUse : retryable ? EXIT.unreachable : EXIT.refused;
    return {
      exitCode,
      code,
      message: code === "missing_credential" && status !== undefined ? NO_LOGIN : message,
      ...defined({ status, request_id: requestId }),
      ...(Object.keys(facts).length === 0 ? {} : { facts }),
    };
  }
  return { exitCode: EXIT.refused, code: "failed", message: error instanceof Error ? error.message : String(error) };
}

/** The service's own sentence is about headers. */
const NO_LOGIN = "There is no login for this service: keywright login, or set KEYWRIGHT_API_KEY.";

const usageText = ({ code, message }: CommanderError): string =>
  code === "commander.help" ? "A command is missing; --help lists them." : message.replace(/^error: /, "");

/** For people: code, what to fix, and what support needs. */
export function failureText({ code, message, request_id, facts }: Failure): string {
  const more = Object.entries(facts ?? {}).map(
    ([name, value]) => `  ${oneLine(name)}: ${oneLine(typeof value === "string" ? value : JSON.stringify(value))}`,
  );
  const lines = [
    `error ${oneLine(code)}: ${oneLine(message, 2_000)}`,
    ...more,
    ...(request_id === undefined ? [] : [`  request id: ${oneLine(request_id)}`]),
  ];
  return `${lines.join("\n")}\n`;
}

export function failureJson({ exitCode: _, ...error }: Failure): string {
  return `${jsonText({ error })}\n`;
}
