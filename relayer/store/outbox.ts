/** The outbox of webhooks: events that triggers do not see are added here, in the transaction of what they tell of. */
import { sql } from "kysely";
import type { WebhookEventType } from "../../protocol/webhooks";
import type { AccountId } from "../../protocol/ids";
import type { Trx } from "./database";

/**
 * Tells those webhooks of the account that want to know. Nothing is stored if there is none.
 * @param data ids and facts, never a secret; at most a few kilobytes as JSON
 */
export async function enqueue(
  trx: Trx,
  accountId: AccountId,
  type: WebhookEventType,
  data: Readonly<Record<string, unknown>>,
): Promise<void> {
  await sql`select enqueue_webhook_event(${accountId}, ${type}, ${JSON.stringify(data)}::json)`.execute(trx);
}
