/**
 * The receipt of a run: a compact JWS (RFC 7515, EdDSA) of the keyholder's statement key over the claims below. It
 * shows a third party what ran, and nothing secret. Source: docs/verify.md "Receipts".
 */
import { z } from "zod";
import { KeywrightError } from "./errors";

export const RECEIPT_HEADER = "Keywright-Receipt";
/** In the protected header, so that nothing else that the statement key signs can be read as a receipt. */
export const RECEIPT_TYPE = "run-receipt+jws";
export const RECEIPT_VERSION = 1;

const hash32 = z.string().regex(/^0x[0-9a-f]{64}$/);
const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/);
const whole = z.int().nonnegative();

export const receiptClaimsSchema = z.strictObject({
  v: z.literal(RECEIPT_VERSION),
  request_id: z.string(),
  key_namespace: hash32,
  config_sha256: sha256Hex,
  account_id: hash32,
  /** The key's hash; the account's own id for its owner. */
  api_key_hash: hash32,
  action_ipfs_cid: z.string(),
  /** Of `JSON.stringify(js_params)`. */
  params_sha256: sha256Hex,
  /** Of `JSON.stringify(response)`; absent when the run was refused. */
  response_sha256: sha256Hex.optional(),
  pkps: z.array(z.string().regex(/^0x[0-9a-fA-F]{40}$/)),
  /** Operations that succeeded, by name. */
  ops: z.record(z.string(), z.int().positive()),
  /** Of the decision. The hash is null when the endpoints did not name it in time. */
  block: z.strictObject({ number: whole, hash: hash32.nullable() }),
  started_at_ms: whole,
  duration_ms: z.number().nonnegative(),
  price_cents: whole,
  /** Of a trigger's run: which trigger, and what fired it. */
  trigger: z.strictObject({ id: z.string(), cause: z.string() }).optional(),
  /** `succeeded`, the code of the run's error, or the code of the refusal. */
  outcome: z.string(),
});
export type ReceiptClaims = z.infer<typeof receiptClaimsSchema>;

/** Three base64url parts. */
export const receiptText = z.string().regex(/^[\w-]+\.[\w-]+\.[\w-]{86}$/);

/** A refusal of a run with its receipt, which becomes a header of the answer and a member of its body. */
export const withReceipt = ({ code, detail, facts }: KeywrightError, receipt: string | undefined): KeywrightError =>
  new KeywrightError(code, detail, receipt === undefined ? facts : { ...facts, receipt });
