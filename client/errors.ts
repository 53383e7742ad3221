/**
 * What goes wrong for a caller of the SDK, always as one class with a stable code: the service's own codes (docs/errors.md), the contract's refusals under the
 * same names, and the few below that only a client can meet.
 */
import type { ErrorCode } from "../protocol/errors";

/** Codes of the SDK itself; everything else comes from the service or the contract. */
export type ClientErrorCode =
  /** No answer arrived: refused, reset, name not found, blocked by the browser. */
  | "network_failed"
  /** No answer within `timeoutMs`. With an idempotency key the act may still have happened. */
  | "client_timed_out"
  /** The caller's own AbortSignal fired. */
  | "aborted"
  /** An answer that this service does not give: usually a proxy's page or a wrong `baseUrl`. */
  | "unexpected_answer"
  /** The act happened, but the answer that carried the secret was lost on its way: revoke by `api_key_hash` and mint another. */
  | "secret_lost"
  /** An argument that cannot be sent; nothing was. */
  | "invalid_argument"
  /** Wallet and service are on different chains, or the service names another contract than the caller pinned. */
  | "wrong_chain"
  /** The signer is not the account's owner: export the write for the owner instead. */
  | "not_the_owner"
  /** The wallet needs a provider for this. */
  | "no_provider"
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

/** The one error the SDK throws. `message` says what to fix; `code` is what programs should look at. */
export class ClientError extends Error {
  override readonly name = "ClientError";
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
}
