/** The part of the protocol between relayer and executor (executor.ts) that is about webhooks. */
import { z } from "zod";
import { WEBHOOK_LIMITS } from "./limits";
import { WEBHOOK_MESSAGE_ID } from "./webhooks";

/** A message to a webhook; the executor composes and signs the body (`webhookBody`). */
const webhookMessage = z.strictObject({
  id: z.string().regex(WEBHOOK_MESSAGE_ID),
  type: z.string().regex(/^[a-z_]{1,64}\.[a-z_]{1,64}$/),
  /** When it happened, in ISO 8601. */
  timestamp: z.iso.datetime(),
  accountId: z.string().regex(/^0x[0-9a-fA-F]{64}$/),
  data: z.record(z.string(), z.unknown()),
});
export type WebhookMessage = z.infer<typeof webhookMessage>;

const signedWebhook = z.strictObject({
  /** Unix seconds of the signature: the executor's clock. */
  timestamp: z.number().int(),
  body: z.string(),
  signature: z.string(),
});
export type SignedWebhook = z.infer<typeof signedWebhook>;

export const WEBHOOK_CALLS = {
  signWebhooks: {
    path: "/webhooks/sign",
    request: z.strictObject({ messages: z.array(webhookMessage).min(1).max(WEBHOOK_LIMITS.receivedAtOnce) }),
    answer: z.strictObject({ messages: z.array(signedWebhook) }),
  },
  /** Signs and sends one message. A receiver that cannot be reached, or may not be, is an answer with `failure`. */
  sendWebhook: {
    path: "/webhooks/send",
    request: z.strictObject({ url: z.string(), message: webhookMessage }),
    answer: z.strictObject({
      durationMs: z.number().nonnegative(),
      status: z.number().int().optional(),
      /** The beginning of the receiver's answer. */
      answer: z.string().optional(),
      failure: z.string().optional(),
    }),
  },
  /** Whether messages may be sent there: a public address at a permitted port. */
  checkWebhook: {
    path: "/webhooks/check",
    request: z.strictObject({ url: z.string() }),
    answer: z.strictObject({ problem: z.string().optional() }),
  },
} as const;
