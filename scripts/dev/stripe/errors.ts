/** Errors in Stripe's shape: `{error: {type, code, message, param, …}}` with its status codes. */
export type StripeErrorType = "invalid_request_error" | "card_error" | "idempotency_error" | "api_error";

export interface StripeErrorBody {
  readonly type: StripeErrorType;
  readonly message: string;
  readonly code?: string | undefined;
  readonly param?: string | undefined;
  readonly decline_code?: string | undefined;
  readonly payment_intent?: unknown;
}

export class StripeHttpError extends Error {
  constructor(
    readonly status: number,
    readonly body: StripeErrorBody,
  ) {
    super(body.message);
  }
}

export function invalidRequest(
  message: string,
  details: { code?: string; param?: string; status?: number } = {},
): StripeHttpError {
  const { status = 400, ...rest } = details;
  return new StripeHttpError(status, { type: "invalid_request_error", message, ...rest });
}

export function noSuch(what: string, id: string, param = "id"): StripeHttpError {
  return invalidRequest(`No such ${what}: '${id}'`, { code: "resource_missing", param, status: 404 });
}

export function badKey(key: string | undefined): StripeHttpError {
  const message =
    key === undefined
      ? "You did not provide an API key. You need to provide your API key in the " +
        "Authorization header, using Bearer auth."
      : `Invalid API Key provided: ${key.slice(0, 8)}****`;
  return invalidRequest(message, { status: 401 });
}
