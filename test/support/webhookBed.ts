/** Messages to webhooks through the real fetcher and the real signer, in this process, without a keyholder around. */
import { randomBytes } from "node:crypto";
import type { ExecutorCall } from "../../protocol/executor";
import type { AccountId } from "../../protocol/ids";
import { createFetcher, type FetcherOptions, type StartedFetcher } from "../../executor/fetcher/client";
import { Keyring } from "../../executor/keys/keyring";
import { StatementKey } from "../../executor/keys/statementKey";
import { Webhooks } from "../../executor/webhooks";
import type { Executor } from "../../relayer/executor/client";
import type { Db } from "../../relayer/store/database";
import { silent } from "./sandbox";

export interface WebhookBed {
  readonly webhooks: Webhooks;
  readonly statementKey: StatementKey;
  /** As relayers call it over the socket. */
  readonly executor: Pick<Executor, "call">;
  stop(): Promise<void>;
}

type Input = { url: string; message: never; messages: never[] };

export async function startWebhookBed(
  allowHosts: readonly string[] = ["127.0.0.1"],
  options: Pick<FetcherOptions, "dnsServers" | "ports"> = {},
): Promise<WebhookBed> {
  const fetcher: StartedFetcher = await createFetcher({ logger: silent, webhookAllowHosts: allowHosts, ...options });
  const statementKey = new StatementKey(new Keyring(Buffer.alloc(32, 9), `0x${"01".repeat(32)}` as never));
  const webhooks = new Webhooks(statementKey, fetcher);
  const calls: Partial<Record<ExecutorCall, (input: Input, signal: AbortSignal) => unknown>> = {
    sendWebhook: ({ url, message }, signal) => webhooks.send(url, message, signal),
    checkWebhook: ({ url }) => webhooks.check(url),
    signWebhooks: ({ messages }) => ({ messages: messages.map((message) => webhooks.sign(message)) }),
  };
  const call = async (name: ExecutorCall, input: unknown, { signal = new AbortController().signal } = {}) =>
    calls[name]?.(input as Input, signal);
  return {
    webhooks,
    statementKey,
    executor: { call: call as Executor["call"] },
    stop: () => fetcher.close(),
  };
}

export async function insertWebhook(
  db: Db,
  accountId: AccountId,
  { url = "https://example.com", events = ["*"], state = "on" as "on" | "off", creditLowCents = 100 } = {},
): Promise<string> {
  const id = `wh_${randomBytes(16).toString("hex")}`;
  const off_reason = state === "off" ? ("owner" as const) : null;
  const values = { id, account_id: accountId, url, events: JSON.stringify(events), description: "", state, off_reason };
  await db
    .insertInto("webhooks")
    .values({ ...values, credit_low_cents: creditLowCents, succeeded_at: null, failing_since: null })
    .execute();
  return id;
}
