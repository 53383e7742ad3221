/**
 * Every error of the API: HTTP status, title, and whether a retry may succeed. A Solidity error maps to the snake_case
 * of its name (`MissingScope` → `missing_scope`). docs/errors.md has a section per code; a test keeps the three
 * consistent.
 * Source: docs/conformance.md §7.
 */
interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  readonly retryable?: true;
}

export const ERRORS = {
  // 400: correct type, invalid value
  malformed_json: { status: 400, title: "The body is not JSON" },
  invalid_value: { status: 400, title: "A field has an impossible value" },
  invalid_cid: { status: 400, title: "Not a CID this service accepts" },
  conflicting_credentials: { status: 400, title: "Two different keys were sent" },
  amount_out_of_range: { status: 400, title: "The amount is out of range" },
  group_zero: { status: 400, title: "Group 0 is a wildcard, not a group" },
  action_zero: { status: 400, title: "Action 0 is a wildcard, not an action" },
  zero_id: { status: 400, title: "Zero is no account or key id" },
  zero_address: { status: 400, title: "The zero address cannot be used here" },
  same_owner: { status: 400, title: "This address is the owner already" },
  owner_is_this_contract: { status: 400, title: "The account contract cannot own an account" },
  forwarder_not_allowed: { status: 400, title: "The forwarder can be neither owner, payer nor admin" },
  nested_batch: { status: 400, title: "A batch of calls that may fail alone contains another batch" },
  too_little_gas: { status: 400, title: "There is too little gas for the next call of a batch" },
  delay_too_long: { status: 400, title: "The delay is longer than a year" },
  foreign_account_id: { status: 400, title: "A wallet's own account has the id of that wallet" },
  string_too_long: { status: 400, title: "A name or description is too long" },
  value_too_large: { status: 400, title: "A number is larger than the contract stores" },
  member_in_both_lists: { status: 400, title: "The same member is to be added and removed" },
  page_too_large: { status: 400, title: "The page is too large" },
  foreign_derivation_path: { status: 400, title: "The derivation path belongs to another account" },
  unknown_path_kind: { status: 400, title: "The derivation path names no known kind of key" },
  typed_data_malformed: { status: 400, title: "The typed data is not of the canonical shape" },
  typed_data_types_mismatch: { status: 400, title: "The typed data's types are not the canonical ones" },
  typed_data_wrong_primary_type: { status: 400, title: "The typed data was signed for another endpoint" },
  typed_data_wrong_domain: { status: 400, title: "The typed data names another service or version" },
  typed_data_wrong_chain: { status: 400, title: "The typed data names another chain" },
  typed_data_expired: { status: 400, title: "issuedAt is outside the accepted window" },
  signature_malformed: { status: 400, title: "The signature is not 65 bytes of the accepted form" },
  signature_mismatch: { status: 400, title: "The signature does not recover to the stated address" },
  request_expired: { status: 400, title: "The forward request's deadline is past" },
  forward_gas_too_low: { status: 400, title: "The forward request allows too little gas for its call" },
  account_not_named: { status: 400, title: "The wallet has to say which account it means" },
  owner_needs_token: {
    status: 400,
    title: "The new owner's wallet is derived in the TEE and must be proved by a token",
  },
  // 401: authentication
  missing_credential: { status: 401, title: "A credential is needed" },
  malformed_key: { status: 401, title: "This is not a key" },
  unknown_key: { status: 401, title: "The key is unknown or revoked" },
  key_expired: { status: 401, title: "The key has expired" },
  invalid_identity_token: { status: 401, title: "The identity token was not accepted" },
  invalid_wallet_auth: { status: 401, title: "The X-Wallet-Auth header was not accepted" },
  invalid_webhook_signature: { status: 401, title: "The webhook's signature was not accepted" },
  // 402
  insufficient_credit: { status: 402, title: "Not enough credit" },
  key_cap_spent: { status: 402, title: "The key's spending cap is spent" },
  key_day_spent: { status: 402, title: "What the key may spend in a day is spent" },
  // 403
  not_authorized: { status: 403, title: "Not permitted" },
  owner_only: { status: 403, title: "Only the owner may do this" },
  missing_scope: { status: 403, title: "The key lacks the scope" },
  account_chain_secured: { status: 403, title: "The account is ChainSecured: its owner writes to the contract" },
  account_frozen: { status: 403, title: "The account is frozen" },
  not_admin: { status: 403, title: "Only the contract admin may do this" },
  not_pending_admin: { status: 403, title: "Only the proposed contract admin may do this" },
  origin_not_allowed: { status: 403, title: "The key is not meant for this page" },
  account_not_owned: { status: 403, title: "The wallet does not own this account" },
  no_execute_scope: { status: 403, title: "The key may not execute in any group" },
  action_not_permitted: { status: 403, title: "No group where the key executes lists the action" },
  pkp_not_permitted: { status: 403, title: "No group where the key executes lists both action and PKP" },
  // 404, 405
  route_not_found: { status: 404, title: "No such route" },
  unknown_account: { status: 404, title: "No such account" },
  account_not_found: { status: 404, title: "The wallet owns no account" },
  unknown_group: { status: 404, title: "No such group" },
  unknown_action: { status: 404, title: "No such action" },
  unknown_pkp: { status: 404, title: "No such PKP" },
  unknown_pkp_number: { status: 404, title: "The account has no PKP of this number" },
  unknown_api_payer: { status: 404, title: "No such API payer" },
  unknown_usage_key: { status: 404, title: "No such usage key" },
  not_in_group: { status: 404, title: "Not a member of this group" },
  payment_intent_not_found: { status: 404, title: "No such payment intent" },
  webhook_not_found: { status: 404, title: "No such webhook" },
  trigger_not_found: { status: 404, title: "No such trigger" },
  log_not_found: { status: 404, title: "The chain has no such log at this depth" },
  submission_not_found: { status: 404, title: "No such submission" },
  code_not_found: { status: 404, title: "No code was found for this CID" },
  evidence_not_found: { status: 404, title: "No such evidence file" },
  method_not_allowed: { status: 405, title: "Wrong method" },
  // 409
  account_id_taken: { status: 409, title: "The account exists already" },
  key_id_taken: { status: 409, title: "The key id is taken" },
  key_revoked: { status: 409, title: "The key was revoked and can never be set again" },
  nothing_to_cancel: { status: 409, title: "There is nothing to cancel" },
  pkp_taken: { status: 409, title: "The wallet is registered already with another path or other strings" },
  payment_not_succeeded: { status: 409, title: "The payment has not succeeded" },
  payment_wrong_currency: { status: 409, title: "The payment is in another currency" },
  idempotency_conflict: { status: 409, title: "The idempotency key was used with another body" },
  idempotency_in_progress: { status: 409, title: "A request with this idempotency key is still running" },
  already_ran: { status: 409, title: "A run with this idempotency key has already been made" },
  too_many_webhooks: { status: 409, title: "The account has as many webhooks as it may" },
  trigger_not_due: { status: 409, title: "The trigger is not due" },
  trigger_paused: { status: 409, title: "The trigger is paused" },
  too_many_triggers: { status: 409, title: "The account has as many triggers as it may have" },
  write_reverted: { status: 409, title: "The write reverted when it was mined" },
  budget_exceeded: { status: 409, title: "The budget does not cover it in this window" },
  forward_nonce_used: { status: 409, title: "The forward request's nonce is not the signer's next" },
  // 413, 415, 422
  payload_too_large: { status: 413, title: "The body is too large" },
  code_too_large: { status: 413, title: "The code is too large" },
  params_too_large: { status: 413, title: "js_params is too large" },
  typed_data_too_large: { status: 413, title: "The typed data is too large" },
  unsupported_media_type: { status: 415, title: "The body must be JSON" },
  invalid_body: { status: 422, title: "The request has the wrong shape" },
  // 429
  rate_limited: { status: 429, title: "Too many requests", retryable: true },
  queue_full: { status: 429, title: "The queue is full", retryable: true },
  // 5xx
  internal_error: { status: 500, title: "Internal error" },
  chain_unavailable: { status: 503, title: "The chain cannot be read or written at the moment", retryable: true },
  executor_unavailable: { status: 503, title: "The executor is unavailable", retryable: true },
  payments_unavailable: { status: 503, title: "The payment processor is unavailable", retryable: true },
  database_unavailable: { status: 503, title: "The database is unavailable", retryable: true },
  no_payer_available: { status: 503, title: "No API payer can send at the moment", retryable: true },
  identity_provider_unavailable: { status: 503, title: "The identity provider is unavailable", retryable: true },
  attestation_unavailable: { status: 503, title: "No TEE endpoint is configured or reachable", retryable: true },
  code_unavailable: { status: 503, title: "The code could not be fetched at the moment", retryable: true },
  not_ready: { status: 503, title: "The service is not ready", retryable: true },
  shutting_down: { status: 503, title: "The service is shutting down", retryable: true },
  submission_pending: { status: 504, title: "The write is still under way", retryable: true },
  timed_out: { status: 504, title: "The service took too long", retryable: true },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** Facts an error carries besides its code; they become members of the problem body. Never secrets. */
export type ErrorFacts = Readonly<Record<string, unknown>>;

/** The error class of all components. `detail` tells the caller what to fix; `cause` is only logged. */
export class KeywrightError extends Error {
  override readonly name = "KeywrightError";
  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    readonly facts: ErrorFacts = {},
    options?: { cause?: unknown; retryAfterSeconds?: number },
  ) {
    super(`${code}: ${detail}`, options?.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterSeconds = options?.retryAfterSeconds;
  }
  readonly retryAfterSeconds: number | undefined;

  get status(): number {
    return ERRORS[this.code].status;
  }
  get retryable(): boolean {
    return "retryable" in ERRORS[this.code];
  }
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}

/** `MissingScope` → `missing_scope`. */
export function codeOfSolidityError(name: string): string {
  return name.replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase();
}

/** Ways a run can fail: `error.code` in an answer with status 200, not HTTP errors. */
export const RUN_ERROR_CODES = [
  "threw",
  "timed_out",
  "out_of_memory",
  "response_too_large",
  "logs_too_large",
  "limit_exceeded",
  "invalid_code",
  "permission_denied",
  "budget_exceeded",
  "key_exposed",
  "preempted",
  "sandbox_crashed",
] as const;
export type RunErrorCode = (typeof RUN_ERROR_CODES)[number];
