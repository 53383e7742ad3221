/** Checks receipts of runs against the statement key of an attested config document. For Node. */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { compactVerify, errors, importJWK } from "jose";
import { configDigest } from "../../protocol/attestation";
import { RECEIPT_TYPE, receiptClaimsSchema, receiptText, type ReceiptClaims } from "../../protocol/receipt";
import { Malformed, jsonOf } from "./types";

export { type ReceiptClaims };

/** What the receipt's holder has of the run; each given one must have the hash of the receipt. */
export interface ReceiptSubjects {
  /** `js_params` as sent. */
  readonly params?: unknown;
  /** `response` of `POST /run_action`. */
  readonly response?: unknown;
}

/**
 * The claims of a receipt that the config document's statement key signed under exactly this document. As trustworthy
 * as the document: take it from `recordService` or `verifyEvidence`, which return it only where a genuine quote covers
 * it, and mind their outcome.
 * @throws Malformed with the reason for any other text: also one that differs in a single character.
 */
export async function verifyReceipt(
  receipt: string,
  config: Readonly<Record<string, unknown>>,
  subjects: ReceiptSubjects = {},
): Promise<ReceiptClaims> {
  const { statement_key: statementKey, key_namespace: namespace } = config;
  if (typeof statementKey !== "string" || !/^0x[0-9a-f]{64}$/.test(statementKey))
    throw new Malformed("the config document names no statement key");
  const payload = await signedPayload(receipt, statementKey, RECEIPT_TYPE, "receipt");
  const parsed = receiptClaimsSchema.safeParse(jsonOf(payload, "the receipt's payload"));
  if (!parsed.success) throw new Malformed(`the receipt has the wrong form at ${pathOf(parsed.error)}`);
  const claims = parsed.data;
  if (canonicalize(claims) !== payload) throw new Malformed("the receipt's payload is not in its canonical form");
  if (claims.config_sha256 !== configDigest(config).toString("hex"))
    throw new Malformed("the receipt was issued under another config document");
  if (claims.key_namespace !== namespace) throw new Malformed("the receipt is of another contract");
  requireHash("js_params", subjects.params, claims.params_sha256);
  requireHash("response", subjects.response, claims.response_sha256);
  return claims;
}

/** What the statement key has signed as a text of this type. @throws Malformed */
export async function signedPayload(text: string, statementKey: string, type: string, name: string): Promise<string> {
  // Of two texts that decode to the same bytes, only one is the receipt: its hash is what the service recorded.
  if (!receiptText.safeParse(text).success || !text.split(".").every(isCanonical))
    throw new Malformed(`the ${name} is not a compact JWS`);
  const x = Buffer.from(statementKey.slice(2), "hex").toString("base64url");
  const key = await importJWK({ kty: "OKP", crv: "Ed25519", x }, "EdDSA");
  const { payload, protectedHeader } = await compactVerify(text, key, { algorithms: ["EdDSA"] }).catch(
    (error: unknown) => {
      throw error instanceof errors.JOSEError
        ? new Malformed(`the service's statement key did not sign this ${name}`)
        : error;
    },
  );
  if (protectedHeader.typ !== type || protectedHeader.kid !== statementKey)
    throw new Malformed(`the signed text is not a ${name} of this service`);
  return Buffer.from(payload).toString("utf8");
}

const isCanonical = (part: string): boolean => Buffer.from(part, "base64url").toString("base64url") === part;

function requireHash(name: string, value: unknown, expected: string | undefined): void {
  if (value === undefined) return;
  const hash = createHash("sha256").update(JSON.stringify(value), "utf8").digest("hex");
  if (hash !== expected) throw new Malformed(`the ${name} given is not the one of the receipt`);
}

const pathOf = ({ issues }: { issues: readonly { path: readonly PropertyKey[] }[] }): string =>
  issues[0]?.path.join(".") || "its top";
