/** Checks a message that a webhook received, in browsers and on servers alike. */
import { ClientError } from "./errors";
import {
  WEBHOOK_ID_HEADER,
  WEBHOOK_MESSAGE_ID,
  WEBHOOK_SIGNATURE_HEADER,
  WEBHOOK_SIGNATURE_VERSION,
  WEBHOOK_TIMESTAMP_HEADER,
  webhookSignedText,
} from "../protocol/webhooks";

export interface WebhookMessage {
  /** The same in every attempt: a receiver that has seen it does nothing. */
  readonly id: string;
  readonly type: string;
  /** When it happened, in ISO 8601. */
  readonly timestamp: string;
  readonly account_id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface VerifyWebhookOptions {
  /**
   * `statement_key` of the config document (`config` of `/info`): as trustworthy as the document, which
   * `verifyService` or `keywright verify` follows to the quote.
   */
  readonly statementKey: string;
  /** The only account whose messages are accepted; default: any of the service's. */
  readonly accountId?: string;
  /** How old a message may be, against replays; default 300. */
  readonly toleranceSeconds?: number;
}

/** Of Node (`request.headers`), the web (`Headers`), or any object. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The message, if the service's statement key signed exactly this body lately.
 * @param body the raw body, byte for byte: not parsed and written again
 * @throws ClientError `invalid_webhook` with the reason.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  { statementKey, accountId, toleranceSeconds = 300 }: VerifyWebhookOptions,
): Promise<WebhookMessage> {
  const id = headerOf(headers, WEBHOOK_ID_HEADER);
  const timestamp = headerOf(headers, WEBHOOK_TIMESTAMP_HEADER);
  if (!WEBHOOK_MESSAGE_ID.test(id)) throw invalid(`${WEBHOOK_ID_HEADER} is no id of this service`);
  if (!/^[1-9][0-9]{0,11}$/.test(timestamp)) throw invalid(`${WEBHOOK_TIMESTAMP_HEADER} is no time`);
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > toleranceSeconds)
    throw invalid("the message was signed too long ago, or the clocks differ");
  const text = typeof body === "string" ? body : decoded(body);
  const signed = new TextEncoder().encode(webhookSignedText(id, timestamp, text));
  if (!(await isSigned(headerOf(headers, WEBHOOK_SIGNATURE_HEADER), signed, await keyOf(statementKey))))
    throw invalid("the service's statement key did not sign this");
  const message = { id, ...(JSON.parse(text) as Omit<WebhookMessage, "id">) };
  if (accountId !== undefined && message.account_id !== accountId.toLowerCase())
    throw invalid("the message is about another account");
  return message;
}

const invalid = (why: string): ClientError => new ClientError("invalid_webhook", `Not accepted: ${why}.`);

function headerOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  return typeof found === "string" ? found : (found?.[0] ?? "");
}

function decoded(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw invalid("the body is not UTF-8");
  }
}

type VerifyingKey = Parameters<typeof crypto.subtle.verify>[1];

async function keyOf(statementKey: string): Promise<VerifyingKey> {
  if (!/^0x[0-9a-f]{64}$/.test(statementKey))
    throw new ClientError("invalid_argument", "statementKey must be 0x and 64 lower-case hex digits.");
  const bytes = Uint8Array.from(statementKey.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
  return crypto.subtle.importKey("raw", bytes, "Ed25519", false, ["verify"]);
}

/** The header may carry several signatures, separated by spaces. */
async function isSigned(header: string, signed: Uint8Array<ArrayBuffer>, key: VerifyingKey): Promise<boolean> {
  for (const signature of header.split(" ").slice(0, 8)) {
    const [version, base64 = ""] = signature.split(",");
    if (version !== WEBHOOK_SIGNATURE_VERSION || !/^[A-Za-z0-9+/]{86}==$/.test(base64)) continue;
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    if (await crypto.subtle.verify("Ed25519", key, bytes, signed)) return true;
  }
  return false;
}
