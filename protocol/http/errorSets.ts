/** Error codes that follow from a route's properties; only other codes are listed with the route. */
import { ERRORS, type ErrorCode } from "../errors";
import { isReadOfCaller, type AuthKind, type BodyKind, type Price, type Route } from "./route";

const KEY = [
  "missing_credential",
  "malformed_key",
  "unknown_key",
  "key_expired",
  "conflicting_credentials",
  "account_chain_secured",
] as const;
const CHAIN = ["chain_unavailable"] as const;
/** `invalid_value`: of X-Account, which names one of an identity's accounts. */
const IDENTITY = [
  "invalid_identity_token",
  "identity_provider_unavailable",
  "executor_unavailable",
  "invalid_value",
] as const;
const OWNED = ["account_not_found", "account_not_named", "account_not_owned", "unknown_account"] as const;
const CALLER = [...KEY, ...CHAIN, ...IDENTITY, ...OWNED] as const;

const BY_AUTH: Record<AuthKind, readonly ErrorCode[]> = {
  none: [],
  stripe: [],
  identityOptional: [...IDENTITY, ...CHAIN],
  wellFormedKey: ["missing_credential", "malformed_key", "conflicting_credentials", ...CHAIN, ...IDENTITY],
  anyKey: CALLER,
  ownerKey: [...CALLER, "owner_only"],
  accountKey: [...CALLER, "owner_only"],
  keyOrWallet: [...CALLER, "invalid_wallet_auth"],
  ownerOrWallet: [...CALLER, "invalid_wallet_auth", "owner_only"],
  optionalKey: CALLER,
};

const JSON_BODY = [
  "malformed_json",
  "payload_too_large",
  "unsupported_media_type",
  "invalid_body",
  "invalid_value",
] as const;
const TYPED_DATA = [
  "typed_data_malformed",
  "typed_data_types_mismatch",
  "typed_data_wrong_primary_type",
  "typed_data_wrong_domain",
  "typed_data_wrong_chain",
  "typed_data_expired",
  "typed_data_too_large",
  "signature_malformed",
  "signature_mismatch",
] as const;
const BY_BODY: Record<BodyKind, readonly ErrorCode[]> = {
  none: [],
  json: JSON_BODY,
  code: JSON_BODY,
  signature: [...JSON_BODY, ...TYPED_DATA, "executor_unavailable"],
  raw: ["payload_too_large"],
  hook: ["payload_too_large"],
};

const PAID = [
  "insufficient_credit",
  "key_cap_spent",
  "key_day_spent",
  "executor_unavailable",
  "payments_unavailable",
] as const;
const WRITE = [
  "not_authorized",
  "account_frozen",
  "missing_scope",
  "owner_only",
  "no_payer_available",
  "queue_full",
  "write_reverted",
  "submission_pending",
] as const;
const BY_PRICE: Record<Price, readonly ErrorCode[]> = {
  free: [],
  managementWrite: [...PAID, ...WRITE],
  writeIfFunded: ["executor_unavailable", ...WRITE],
  run: [...PAID, "account_frozen", "origin_not_allowed"],
};

const READ = ["queue_full"] as const;
const IDEMPOTENT = ["idempotency_conflict", "idempotency_in_progress", "invalid_value"] as const;
const ALWAYS = ["rate_limited", "internal_error", "database_unavailable", "timed_out", "shutting_down"] as const;

/** Every code this route may return, in the order of the error table. */
export function errorsOf(route: Route): ErrorCode[] {
  const fieldErrors: readonly ErrorCode[] =
    (route.request.params ?? route.request.query) === undefined
      ? []
      : ["invalid_value", "invalid_body", "page_too_large"];
  const groupErrors: readonly ErrorCode[] = namesGroup(route) ? ["group_zero"] : [];
  const mintErrors: readonly ErrorCode[] = route.mints
    ? ["executor_unavailable", "no_payer_available", "submission_pending", "queue_full"]
    : [];
  const codes = new Set<ErrorCode>([
    ...route.errors,
    ...BY_AUTH[route.auth],
    ...BY_BODY[route.body],
    ...BY_PRICE[route.price],
    ...(isReadOfCaller(route) ? READ : []),
    ...(route.effect ? IDEMPOTENT : []),
    ...mintErrors,
    ...fieldErrors,
    ...groupErrors,
    ...ALWAYS,
  ]);
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code));
}

/** Whether the route's target is a group: in the path, the query or the body. */
function namesGroup({ path, example }: Route): boolean {
  const fields = Object.keys({ ...example.query, ...(example.body as object | undefined) });
  return path.startsWith("/groups/") || fields.includes("group_id");
}
