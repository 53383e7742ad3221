/**
 * Signed messages about an account, in the form of Standard Webhooks: `webhook-id`, `webhook-timestamp` and
 * `webhook-signature` (`v1a`, Ed25519). Source: docs/webhooks.md.
 */

export const WEBHOOK_MESSAGE_ID = /^msg_[0-9a-f]{32}$/;
export const WEBHOOK_ID_HEADER = "webhook-id";
export const WEBHOOK_TIMESTAMP_HEADER = "webhook-timestamp";
export const WEBHOOK_SIGNATURE_HEADER = "webhook-signature";
/** Precedes the base64 of an Ed25519 signature in the header. */
export const WEBHOOK_SIGNATURE_VERSION = "v1a";

export interface WebhookParts {
  readonly id: string;
  readonly type: string;
  /** When it happened, in ISO 8601; the header's timestamp is that of the attempt. */
  readonly timestamp: string;
  readonly accountId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The body: always an object of these four members in this order. */
export const webhookBody = ({ type, timestamp, accountId, data }: WebhookParts): string =>
  JSON.stringify({ type, timestamp, account_id: accountId, data });

/**
 * The signed text. Always begins with `msg_`: no other statement of the statement key begins so, and this one begins
 * like none of them.
 */
export const webhookSignedText = (id: string, timestamp: number | string, body: string): string =>
  `${id}.${timestamp}.${body}`;

/** Events of the contract have the type `account.` and their name in snake case. */
export const CHAIN_EVENT_FAMILY = "account";

/** The other types, each with when it is sent. */
export const WEBHOOK_EVENTS = {
  "run.succeeded": "An action ran and returned.",
  "run.failed": "An action ran and failed; `outcome` says how.",
  "write.confirmed": "A write was executed.",
  "write.failed": "A write failed or expired.",
  "payment.credited": "A payment was credited.",
  "credit.low": "A posting took the balance below the webhook's level.",
  "key.expiring": "A usage key expires within three days.",
  "trigger.paused":
    "The service paused a trigger, which failed again and again or has too many firings waiting: see `reason`.",
  "webhook.off": "Another webhook of the account was switched off after failing for three days.",
  "webhook.test": "Sent by `test`, to that webhook alone.",
} as const;
export type WebhookEventType = keyof typeof WEBHOOK_EVENTS;

/** `AccountCreated` → `account.account_created`. */
export const typeOfChainEvent = (name: string): string =>
  `${CHAIN_EVENT_FAMILY}.${name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase()}`;
