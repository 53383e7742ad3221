/**
 * The SDK's errors: one class with a stable code. Codes are the service's own (docs/errors.md), the contract's reverts
 * under the same names, and the client-only ones below.
 */
import { defined } from "../protocol/defined";
import type { ErrorCode } from "../protocol/errors";

/** Codes of the SDK itself; everything else comes from the service or the contract. */
export type ClientErrorCode =
  /** No answer arrived: refused, reset, name not found, blocked by the browser. */
  | "network_failed"
  /** No answer within `timeoutMs`. A call with an idempotency key may still have taken effect. */
  | "client_timed_out"
  /** The caller's own AbortSignal fired. */
  | "aborted"
  /** The answer is not one of this service's: usually a proxy's page or a wrong `baseUrl`. */
  | "unexpected_answer"
  /** The call took effect, but the answer with the secret was lost: revoke by `api_key_hash` and mint another. */
  | "secret_lost"
  /** An invalid argument; nothing was sent. */
  | "invalid_argument"
  /** Wallet and service are on different chains, or the service names another contract than the caller pinned. */
  | "wrong_chain"
  /** The signer is not the account's owner: export the write for the owner instead. */
  | "not_the_owner"
  /** The wallet needs a provider for this. */
  | "no_provider"
  /** What arrived is no message to a webhook that the service signed lately. */
  | "invalid_webhook"
  /** The wallet's user declined. */
  | "wallet_declined"
  /** The action that was to sign for a PKP failed: its own error is in `facts`. */
  | "signing_failed"
  /** The wallet or its node refused or lost the transaction for a reason that is not the contract's. */
  | "transaction_failed";

export interface ClientErrorOptions {
  readonly status?: number;
  readonly requestId?: string;
  /** True when the same call may succeed later. */
  readonly retryable?: boolean;
  readonly retryAfterSeconds?: number;
  /** Further members of the problem body, for example `required_cents` or `submission_id`. Never a secret. */
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

const BRAND = Symbol.for("keywright.ClientError");

/** The one error the SDK throws. `message` says what to fix; programs should branch on `code`. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly [BRAND] = true;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly retryable: boolean;
  readonly retryAfterSeconds: number | undefined;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(
    readonly code: ErrorCode | ClientErrorCode,
    message: string,
    options: ClientErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status;
    this.requestId = options.requestId;
    this.retryable = options.retryable ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.facts = options.facts ?? {};
  }

  /** By a mark: the package's entries are bundles, each with its own copy of this class. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  /** For logs and messages between programs: `JSON.stringify` leaves out an error's message. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, message, status, requestId, retryable, retryAfterSeconds, facts } = this;
    return { name, code, message, ...defined({ status, requestId, retryAfterSeconds }), retryable, facts };
  }
}

/** The same error, with more facts. */
export function withFacts(error: ClientError, more: Readonly<Record<string, unknown>>): ClientError {
  const { code, message, status, requestId, retryable, retryAfterSeconds, facts, cause } = error;
  return new ClientError(code, message, {
    retryable,
    facts: { ...facts, ...more },
    cause,
    ...defined({ status, requestId, retryAfterSeconds }),
  });
}

export function refuse(message: string): never {
  throw new ClientError("invalid_argument", message);
}

/** A command line or a project's files are wrong; no request was made. */
export class WrongUse extends Error {}
