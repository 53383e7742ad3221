/** Webhooks, for the owner of the account they tell of. Source: docs/webhooks.md. */
import { defined } from "../../protocol/defined";
import type { webhookRoutes as routes } from "../../protocol/http/webhooks";
import { WEBHOOK_ID_HEADER, WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from "../../protocol/webhooks";
import type { Answer, Caller, HandlersOf } from "../middleware/call";
import type { DeliveryView, FetchedMessage, Owner, WebhookView, Webhooks } from "../webhooks/registry";

export function webhookRoutes({ webhooks }: { readonly webhooks: Webhooks }): HandlersOf<keyof typeof routes> {
  return {
    listWebhooks: async ({ caller }) => (await webhooks.list(caller.accountId)).map(webhookItem),
    createWebhook: async ({ caller, body }) => webhookItem(await webhooks.create(ownerOf(caller), body)),
    updateWebhook: async ({ caller, params, body }) =>
      webhookItem(await webhooks.update(ownerOf(caller), params.id, body)),
    deleteWebhook: async ({ caller, params }) => {
      await webhooks.delete(caller.accountId, params.id);
      return { success: true };
    },
    testWebhook: async ({ caller, params }) => ({ message_id: await webhooks.test(caller.accountId, params.id) }),
    webhookDeliveries: async ({ caller, params, query }) =>
      (await webhooks.deliveries(caller.accountId, params.id, query)).map(deliveryItem),
    replayWebhook: async ({ caller, params, body }) => ({
      replayed: await webhooks.replay(caller.accountId, params.id, body.message_ids),
    }),
    receiveWebhook: async ({ caller, params, body, confirmed }) => {
      await confirmed;
      const passed = body.passed.map(({ message_id: messageId, ...rest }) => ({ messageId, ...rest }));
      return { messages: (await webhooks.receive(caller.accountId, params.id, passed)).map(messageItem) };
    },
  };
}

const ownerOf = ({ accountId, wallet, identityWallet }: Caller): Owner => ({
  accountId,
  wallet: wallet ?? identityWallet,
});

const iso = (date: Date | null): string | undefined => date?.toISOString();

function webhookItem(view: WebhookView): Answer<"listWebhooks">[number] {
  const { id, url, events, description, creditLowCents, state, offReason, createdAt, succeededAt, failingSince } = view;
  return {
    ...{ id, url, events: [...events], description, credit_low_cents: creditLowCents, state },
    created_at: createdAt.toISOString(),
    ...defined({
      off_reason: offReason ?? undefined,
      succeeded_at: iso(succeededAt),
      failing_since: iso(failingSince),
    }),
  };
}

function deliveryItem(view: DeliveryView): Answer<"webhookDeliveries">[number] {
  const { messageId, type, data, state, attempts, createdAt, dueAt, attemptedAt } = view;
  return {
    ...{ message_id: messageId, type, data: data as Answer<"webhookDeliveries">[number]["data"], state, attempts },
    created_at: createdAt.toISOString(),
    ...defined({
      next_attempt_at: state === "pending" ? iso(dueAt) : undefined,
      attempted_at: iso(attemptedAt),
      duration_ms: view.durationMs ?? undefined,
      status: view.status ?? undefined,
      answer: view.answer ?? undefined,
      failure: view.failure ?? undefined,
    }),
  };
}

const messageItem = ({ messageId, timestamp, signature, body }: FetchedMessage): Message => ({
  message_id: messageId,
  headers: {
    "content-type": "application/json",
    [WEBHOOK_ID_HEADER]: messageId,
    [WEBHOOK_TIMESTAMP_HEADER]: String(timestamp),
    [WEBHOOK_SIGNATURE_HEADER]: signature,
  },
  body,
});
type Message = Answer<"receiveWebhook">["messages"][number];
