/** Webhooks: signed messages about an account. Source: docs/webhooks.md. */
import { z } from "zod";
import { WEBHOOK_LIMITS, WIRE_LIMITS } from "../limits";
import { WEBHOOK_EVENTS, WEBHOOK_MESSAGE_ID } from "../webhooks";
import {
  boundedNumber,
  count,
  descriptionText,
  members,
  outJson,
  reading,
  success,
  withoutNul,
  writing,
} from "./fields";
import { defineRoute } from "./route";

const read = { ...reading, tag: "Webhooks", auth: "ownerOrWallet" } as const;
const write = { ...writing, tag: "Webhooks", auth: "ownerOrWallet", price: "free" } as const;

const ID = /^wh_[0-9a-f]{32}$/;
const exampleId = `wh_${"5a".repeat(16)}`;
const exampleMessage = `msg_${"d3".repeat(16)}`;
const time = z.string().meta({ description: "ISO 8601.", example: "2026-11-24T20:00:00.000Z" });

const params = z.object({
  id: z.string().regex(ID, "must be wh_ and 32 lower-case hex digits").meta({ description: "Of the webhook." }),
});
const messageId = z
  .string()
  .regex(WEBHOOK_MESSAGE_ID, "must be msg_ and 32 lower-case hex digits")
  .meta({ description: "Of the message: `webhook-id`.", examples: [exampleMessage] });

const families = new Set(Object.keys(WEBHOOK_EVENTS).map((type) => `${type.split(".")[0]}.*`));
const isWanted = (text: string): boolean =>
  text === "*" || text in WEBHOOK_EVENTS || families.has(text) || /^account\.(\*|[a-z_]{1,64})$/.test(text);

const values = {
  url: withoutNul(
    z
      .url({ protocol: /^https?$/, error: "must be an http or https URL" })
      .max(2_048, "must be at most 2048 characters"),
  ).meta({ description: "Where messages are sent; in production https. Redirects are not followed." }),
  events: members(z.string().refine(isWanted, "must be *, a type of docs/webhooks.md or a family such as run.*"), 64)
    .min(1, "must name at least one type")
    .meta({ description: "Types, families such as `run.*`, or `*` for everything." }),
  description: withoutNul(descriptionText),
  credit_low_cents: boundedNumber(
    1,
    WIRE_LIMITS.amountCentsMax,
    "`credit.low` is sent when the balance falls below this.",
  ),
};

const webhook = z.strictObject({
  id: z.string(),
  url: z.string().nullable().meta({ description: "Null where messages are fetched by `receive`." }),
  events: z.array(z.string()),
  description: z.string(),
  credit_low_cents: count,
  state: z.enum(["on", "off"]),
  off_reason: z
    .enum(["owner", "owner_changed", "unreachable", "gone", "too_many"])
    .optional()
    .meta({ description: "Why it is off." }),
  created_at: time,
  succeeded_at: time.optional().meta({ description: "Of a recent success, to the minute." }),
  failing_since: time.optional().meta({ description: "Nothing has arrived since." }),
});
const example = {
  id: exampleId,
  url: "https://example.com/keywright",
  events: ["run.*", "credit.low"],
  description: "",
  credit_low_cents: WEBHOOK_LIMITS.creditLowCents,
  state: "on",
  created_at: "2026-11-24T20:00:00.000Z",
};

const listWebhooks = defineRoute({
  ...read,
  path: "/webhooks",
  summary: "The account's webhooks, oldest first.",
  response: z.array(webhook),
  example: { response: [example] },
});

const createWebhook = defineRoute({
  ...write,
  path: "/webhooks",
  summary: "Signed messages about the account to this URL. Without `url` they wait to be fetched by `receive`.",
  request: {
    body: z.strictObject({
      url: values.url.optional(),
      events: values.events.default(["*"]),
      description: values.description.default(""),
      credit_low_cents: values.credit_low_cents.default(WEBHOOK_LIMITS.creditLowCents),
    }),
  },
  response: webhook,
  errors: ["too_many_webhooks", "executor_unavailable"],
  example: { body: { url: example.url, events: example.events }, response: example },
});

const updateWebhook = defineRoute({
  ...write,
  path: "/webhooks/:id",
  summary: "Changes the values that are given. Switched on again, it continues with what still waits.",
  request: {
    params,
    body: z.strictObject({
      url: values.url.optional(),
      events: values.events.optional(),
      description: values.description.optional(),
      credit_low_cents: values.credit_low_cents.optional(),
      state: z.enum(["on", "off"], "must be on or off").optional(),
    }),
  },
  response: webhook,
  errors: ["webhook_not_found", "executor_unavailable"],
  example: { params: { id: exampleId }, body: { state: "on" }, response: example },
});

const deleteWebhook = defineRoute({
  ...write,
  path: "/webhooks/:id/delete",
  summary: "Deletes the webhook and its deliveries.",
  body: "none",
  request: { params },
  response: z.strictObject({ success }),
  errors: ["webhook_not_found"],
  example: { params: { id: exampleId }, response: { success: true } },
});

const testWebhook = defineRoute({
  ...write,
  path: "/webhooks/:id/test",
  summary: "Sends a message of the type `webhook.test` to this webhook alone.",
  body: "none",
  request: { params },
  response: z.strictObject({ message_id: z.string() }),
  errors: ["webhook_not_found", "queue_full"],
  example: { params: { id: exampleId }, response: { message_id: exampleMessage } },
});

const DELIVERY_STATES = ["pending", "delivered", "failed"] as const;

const webhookDeliveries = defineRoute({
  ...read,
  path: "/webhooks/:id/deliveries",
  summary: "Messages to the webhook with what its last attempt was answered, newest first.",
  request: {
    params,
    query: z.object({
      state: z
        .enum(DELIVERY_STATES, `must be one of ${DELIVERY_STATES.join(", ")}`)
        .optional()
        .meta({ description: "Only these." }),
      before: messageId.optional().meta({ description: "A `message_id`: only older ones." }),
      limit: boundedNumber(1, 200, "At most so many, 1 to 200.").default(50),
    }),
  },
  response: z.array(
    z.strictObject({
      message_id: z.string(),
      type: z.string(),
      data: z.record(z.string(), outJson),
      state: z.enum(DELIVERY_STATES),
      attempts: count,
      created_at: time,
      next_attempt_at: time.optional().meta({ description: "While pending." }),
      attempted_at: time.optional(),
      duration_ms: count.optional(),
      status: count.optional(),
      answer: z
        .string()
        .optional()
        .meta({ description: `The first ${WEBHOOK_LIMITS.answerBytes} bytes of the receiver's answer.` }),
      failure: z.string().optional().meta({ description: "Why there was no answer." }),
    }),
  ),
  errors: ["webhook_not_found"],
  example: {
    params: { id: exampleId },
    response: [
      {
        message_id: exampleMessage,
        type: "credit.low",
        data: { balance_cents: 99, threshold_cents: 100 },
        state: "delivered",
        attempts: 1,
        created_at: example.created_at,
        attempted_at: example.created_at,
        duration_ms: 35,
        status: 204,
        answer: "",
      },
    ],
  },
});

const replayWebhook = defineRoute({
  ...write,
  path: "/webhooks/:id/replay",
  summary: "Sends messages again under their ids: the given ones, or the oldest 10,000 that failed.",
  request: {
    params,
    body: z.strictObject({
      message_ids: members(messageId, 200)
        .optional()
        .meta({ description: "Without it, the oldest 10,000 that failed." }),
    }),
  },
  response: z.strictObject({ replayed: count }),
  errors: ["webhook_not_found"],
  example: { params: { id: exampleId }, body: { message_ids: [exampleMessage] }, response: { replayed: 1 } },
});

const receiveWebhook = defineRoute({
  ...write,
  path: "/webhooks/:id/receive",
  summary:
    "For a webhook without a URL: signed messages that are due, to be passed on within a minute. What became of them " +
    "is said with the next request.",
  request: {
    params,
    body: z.strictObject({
      passed: members(
        z.strictObject({
          message_id: messageId,
          status: boundedNumber(100, 599, "The local receiver's status.").optional(),
          failure: z.string().max(256, "must be at most 256 characters").optional(),
        }),
        WEBHOOK_LIMITS.receivedAtOnce,
      ).default([]),
    }),
  },
  response: z.strictObject({
    messages: z.array(
      z.strictObject({
        message_id: z.string(),
        headers: z.record(z.string(), z.string()),
        body: z.string().meta({ description: "Byte for byte what is signed." }),
      }),
    ),
  }),
  errors: ["webhook_not_found", "executor_unavailable"],
  example: {
    params: { id: exampleId },
    body: { passed: [] },
    response: {
      messages: [
        {
          message_id: exampleMessage,
          headers: {
            "webhook-id": exampleMessage,
            "webhook-timestamp": "1764014400",
            "webhook-signature": `v1a,${Buffer.alloc(64, 7).toString("base64")}`,
          },
          body: '{"type":"webhook.test","timestamp":"2026-11-24T20:00:00.000Z","account_id":"0x…","data":{}}',
        },
      ],
    },
  },
  effect: false,
});

export const webhookRoutes = {
  listWebhooks,
  createWebhook,
  updateWebhook,
  deleteWebhook,
  testWebhook,
  webhookDeliveries,
  replayWebhook,
  receiveWebhook,
};
