/** A problem body (RFC 9457) as the SDK's error. */
import { type ErrorCode } from "../protocol/errors";
import { ClientError } from "./errors";
import { defined } from "../protocol/defined";

const STANDARD_MEMBERS = new Set(["type", "title", "status", "detail", "code", "request_id", "retryable", "message"]);

/** The error for an answer outside 2xx. A body that is not a problem came from a proxy, not from the service. */
export function problemOf(response: Response, body: unknown): ClientError {
  const retryAfterSeconds = retryAfterOf(response);
  const problem = isProblem(body) ? body : undefined;
  const shared = { status: response.status, ...defined({ retryAfterSeconds }) };
  if (problem === undefined) {
    const retryable = [429, 502, 503, 504].includes(response.status);
    return new ClientError(
      "unexpected_answer",
      `HTTP ${response.status} without a problem body: is baseUrl the service's origin?`,
      { ...shared, retryable },
    );
  }
  const facts = Object.fromEntries(Object.entries(problem).filter(([name]) => !STANDARD_MEMBERS.has(name)));
  return new ClientError(problem.code as ErrorCode, problem.detail, {
    ...shared,
    retryable: problem.retryable === true,
    facts,
    ...(typeof problem.request_id === "string" ? { requestId: problem.request_id } : {}),
  });
}

interface Problem extends Record<string, unknown> {
  readonly code: string;
  readonly detail: string;
}

function isProblem(body: unknown): body is Problem {
  return (
    typeof body === "object" &&
    body !== null &&
    "code" in body &&
    typeof body.code === "string" &&
    "detail" in body &&
    typeof body.detail === "string"
  );
}

/** Seconds or an HTTP date. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("retry-after");
  if (text === null || text.trim() === "") return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}
