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

/** Faults that a test may inject, and where in a request they occur. */
export const FAULT_KINDS = ["error_before", "error_after", "lost_before", "lost_after"] as const;

/**
 * `error_…`: a 500 answer; `lost_…`: the connection breaks without an answer. `…_before`: without effect; `…_after`:
 * the request took effect.
 */
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Affects requests whose `METHOD path` contains this text; empty = all. */
  readonly where: string;
  /** How many requests it affects. */
  readonly times: number;
}

export class Faults {
  #planned: Fault[] = [];
  /** Share of requests that get a random fault, besides the planned ones. */
  rate = 0;

  plan(fault: Fault): void {
    this.#planned.push(fault);
  }

  clear(): void {
    this.#planned = [];
    this.rate = 0;
  }

  /** Returns this request's fault and consumes one occurrence. */
  strike(method: string, path: string): FaultKind | undefined {
    const at = this.#planned.findIndex(({ where }) => `${method} ${path}`.includes(where));
    const fault = this.#planned[at];
    if (fault === undefined)
      return Math.random() < this.rate ? FAULT_KINDS[Math.floor(Math.random() * FAULT_KINDS.length)] : undefined;
    this.#planned.splice(at, 1, ...(fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []));
    return fault.kind;
  }
}
