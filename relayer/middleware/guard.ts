/**
 * Validates requests and responses against the route table. A wrong shape is 422 and lists the failing fields; invalid
 * values are 400 with their code.
 */
import type { z } from "zod";
import { KeywrightError, isErrorCode, type ErrorCode } from "../../protocol/errors";
import type { IssueFacts, Route } from "../../protocol/http";

export interface GuardedRequest {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

interface FieldError {
  readonly field: string;
  readonly message: string;
  readonly shape: boolean;
  readonly code: ErrorCode;
}

/** Validates all parts of a request together, so that one response names the failing fields of all. */
export function guardRequest(route: Route, given: GuardedRequest): GuardedRequest {
  const failures: FieldError[] = [];
  const check = (schema: z.ZodType | undefined, value: unknown, part: string, alwaysText: boolean): unknown => {
    if (schema === undefined) return undefined;
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    failures.push(...parsed.error.issues.flatMap((issue) => fieldErrors(issue, part, alwaysText)));
    return undefined;
  };
  const { request } = route;
  const guarded = {
    params: check(request.params, given.params, "path", true),
    query: check(request.query, given.query, "query", true),
    body: check(request.body, given.body, "", false),
  };
  if (failures.length > 0) throw refusal(failures);
  return guarded;
}

/** An answer names no more: a request can have fifty thousand wrong fields, or one of a megabyte. */
const MAX_NAMED = 64;
const MAX_FIELD_CHARS = 128;

function refusal(failures: readonly FieldError[]): KeywrightError {
  const errors = failures.slice(0, MAX_NAMED).map(({ field, message }) => ({ field: shortened(field), message }));
  const named = errors.map(({ field, message }) => `${field}: ${message}`);
  const detail = [...named, ...(failures.length > MAX_NAMED ? ["and more"] : [])].join("; ");
  if (failures.some(({ shape }) => shape)) return new KeywrightError("invalid_body", detail, { errors });
  const codes = new Set(failures.map(({ code }) => code));
  const [only] = codes;
  return new KeywrightError(codes.size === 1 && only !== undefined ? only : "invalid_value", detail, { errors });
}

const shortened = (field: string): string =>
  field.length <= MAX_FIELD_CHARS ? field : `${field.slice(0, MAX_FIELD_CHARS)}…`;

function fieldErrors(issue: z.core.$ZodIssue, part: string, alwaysText: boolean): FieldError[] {
  const path = [part, ...issue.path.map(String)].filter((step) => step !== "");
  const facts = factsOf(issue, alwaysText);
  if (issue.code !== "unrecognized_keys")
    return [{ field: path.join(".") || "body", message: issue.message, ...facts }];
  return issue.keys.slice(0, MAX_NAMED + 1).map((key) => ({
    field: [...path, key].join("."),
    message: "is not a field of this request",
    ...facts,
  }));
}

/** Query and path are always text, so only a missing or repeated value counts as a wrong shape there. */
function factsOf(issue: z.core.$ZodIssue, alwaysText: boolean): { shape: boolean; code: ErrorCode } {
  const facts = (issue.code === "custom" ? issue.params : undefined) as IssueFacts | undefined;
  const shapeIssue =
    issue.code === "invalid_type" ||
    issue.code === "unrecognized_keys" ||
    issue.code === "invalid_union" ||
    facts?.shape === true;
  const code = facts?.code !== undefined && isErrorCode(facts.code) ? facts.code : "invalid_value";
  return { shape: shapeIssue && !(alwaysText && facts?.shape === true), code };
}

/** A response that violates its own schema is a bug of this service and is never sent. */
export function guardAnswer(route: Route, answer: unknown): void {
  const parsed = route.response.safeParse(answer);
  if (parsed.success) return;
  const where = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  throw new Error(`the answer of ${route.method} ${route.path} does not fit its schema: ${where}`);
}
