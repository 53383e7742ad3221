/** Verifies requests to hooks against the secret of their trigger. Secrets and signatures never appear in errors. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { webhookSecretBytes, type HookSettings } from "../../protocol/trigger";

export interface HookRequest {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Those that senders in the field use for an HMAC of the body, with or without `sha256=`, in hex or base64. */
const HMAC_HEADERS = ["x-hub-signature-256", "x-signature-256", "x-signature"];

const refused = (detail: string): KeywrightError => new KeywrightError("invalid_webhook_signature", detail);

/**
 * The sender's name for the request, the same for each repetition of it; undefined where the sender gives none.
 * @throws KeywrightError `invalid_webhook_signature`.
 */
export function verifyHook(
  { verification, secret = "" }: HookSettings,
  request: HookRequest,
  nowSeconds: number,
): string | undefined {
  if (verification === "hmac") return verifyHmac(secret, request);
  return verification === "standard_webhooks" ? verifyStandard(secret, request, nowSeconds) : undefined;
}

/** An HMAC names no request, and says no time: each request fires, also a repeated one. */
function verifyHmac(secret: string, { body, headers }: HookRequest): undefined {
  const given = HMAC_HEADERS.map((name) => headers[name]).find((value) => value !== undefined);
  if (given === undefined) throw refused(`Send the body's HMAC-SHA256 in ${HMAC_HEADERS.join(", or ")}.`);
  const expected = createHmac("sha256", secret).update(body).digest();
  const text = given.trim().replace(/^sha256=/i, "");
  const actual = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? "hex" : "base64");
  if (!isEqual(actual, expected)) throw refused("The signature is not the HMAC-SHA256 of this body.");
  return undefined;
}

/** Source: the Standard Webhooks specification, symmetric signatures (`v1`). */
function verifyStandard(secret: string, { body, headers }: HookRequest, nowSeconds: number): string {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name) => headers[name],
  );
  if (id === undefined || timestamp === undefined || signatures === undefined)
    throw refused("Send webhook-id, webhook-timestamp and webhook-signature.");
  const seconds = /^[0-9]{1,12}$/.test(timestamp) ? Number(timestamp) : NaN;
  if (!(Math.abs(nowSeconds - seconds) <= TRIGGER_LIMITS.hookToleranceSeconds))
    throw refused(`webhook-timestamp must be within ${TRIGGER_LIMITS.hookToleranceSeconds} seconds of now.`);
  const key = webhookSecretBytes(secret) ?? Buffer.alloc(0);
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  const isSigned = signatures.split(" ").some((one) => {
    const [version, signature = ""] = one.split(",");
    return version === "v1" && isEqual(Buffer.from(signature, "base64"), expected);
  });
  if (!isSigned) throw refused("No v1 signature of webhook-signature is that of this body.");
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

const isEqual = (one: Buffer, other: Buffer): boolean => one.length === other.length && timingSafeEqual(one, other);
