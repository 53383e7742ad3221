/**
 * Signed messages about an account, in the form of Standard Webhooks: `webhook-id`, `webhook-timestamp` and
 * `webhook-signature` (`v1a`, Ed25519). Source: docs/webhooks.md.
 */

/** Events of the contract have the type `account.` and their name in snake case. */
export const CHAIN_EVENT_FAMILY = "account";

/** The other types, each with when it is sent. */
export const WEBHOOK_EVENTS = {
  "run.succeeded": "An action ran and returned.",
  "run.failed": "An action ran and failed; `outcome` says how.",
  "write.confirmed": "A write was executed.",
  "write.failed": "A write failed or expired.",
  "payment.credited": "A payment was credited.",
  "credit.low": "A posting took the credit below the threshold.",
  "key.expiring": "A usage key expires within three days.",
  "trigger.paused": "A trigger was paused after failing again and again; `reason` says how.",
  "webhook.off": "Another webhook of the account was switched off after failing for three days.",
  "webhook.test": "Sent by `test`, to that webhook alone.",
} as const;
export type WebhookEventType = keyof typeof WEBHOOK_EVENTS;

/** `AccountCreated` → `account.account_created`. */
export const typeOfChainEvent = (name: string): string =>
  `${CHAIN_EVENT_FAMILY}.${name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase()}`;
