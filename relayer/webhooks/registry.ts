/** Webhooks as their account's owner manages them. */
import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import type { SignedWebhook } from "../../protocol/webhookCalls";
import type { AccountId, Address } from "../../protocol/ids";
import { WEBHOOK_LIMITS } from "../../protocol/limits";
import type { Executor } from "../executor/client";
import type { Db, Trx } from "../store/database";
import { lockAccount, lockWebhooks } from "../store/locks";
import { deleteWebhook } from "../store/retention";
import type { WebhooksTable } from "../store/tables/webhooks";
import { claim, finish, type Attempt } from "./deliveries";

/** The owner for whom a change was authorised. */
export interface Owner {
  readonly accountId: AccountId;
  /** Absent for the account's own key, which no owner has after a change of owner. */
  readonly wallet?: Address | undefined;
}

export interface WebhookView {
  readonly id: string;
  readonly url: string | null;
  readonly events: readonly string[];
  readonly description: string;
  readonly creditLowCents: number;
  readonly state: "on" | "off";
  readonly offReason: WebhooksTable["off_reason"];
  readonly createdAt: Date;
  readonly succeededAt: Date | null;
  readonly failingSince: Date | null;
}

export interface WebhookValues {
  /** Absent in a new webhook: its messages are fetched. */
  readonly url?: string | undefined;
  readonly events?: readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly credit_low_cents?: number | undefined;
  readonly state?: "on" | "off" | undefined;
}

export interface DeliveryView {
  readonly messageId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly state: "pending" | "delivered" | "failed";
  readonly attempts: number;
  readonly createdAt: Date;
  readonly dueAt: Date;
  readonly attemptedAt: Date | null;
  readonly durationMs: number | null;
  readonly status: number | null;
  readonly answer: string | null;
  readonly failure: string | null;
}

export interface DeliveryFilter {
  readonly state?: DeliveryView["state"] | undefined;
  /** A message's id: only older ones. */
  readonly before?: string | undefined;
  readonly limit: number;
}

/** What came of passing on a message that was fetched. */
export interface Passed extends Attempt {
  readonly messageId: string;
}
export interface FetchedMessage extends SignedWebhook {
  readonly messageId: string;
}

/** Far fewer than may wait for one receiver, and than a statement has time for. */
const REPLAYED_AT_ONCE = 10_000;

export interface WebhooksOptions {
  readonly db: Db;
  readonly executor: Pick<Executor, "call">;
  /** Messages tell of an account: in production they are sent over https only. */
  readonly httpsOnly: boolean;
}

const CHANGES_OF_OWNER = ["AccountOwnershipTransferred", "AccountConvertedToChainSecured"];
const VIEW = sql`id, url, events, description, credit_low_cents as "creditLowCents", state, off_reason as "offReason",
  created_at as "createdAt", succeeded_at as "succeededAt", failing_since as "failingSince"`;

export class Webhooks {
  readonly #options: WebhooksOptions;

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  async list(accountId: AccountId): Promise<readonly WebhookView[]> {
    const { rows } = await sql<WebhookView>`select ${VIEW} from webhooks where account_id = ${accountId}
      order by created_at, id`.execute(this.#options.db);
    return rows;
  }

  /** Errors: `invalid_value` for a URL where nothing may be sent, `too_many_webhooks`, `account_not_owned`. */
  async create(owner: Owner, values: WebhookValues): Promise<WebhookView> {
    const { accountId } = owner;
    this.#requireHttps(values.url);
    // Stored before its address is looked up, which takes as long as its name servers like: a change of owner in that
    // time switches it off.
    const { id } = await this.#insert(owner, values);
    await this.#requireSendable(values.url).catch(async (error: unknown) => {
      await sql`delete from webhooks where id = ${id} and account_id = ${accountId}`.execute(this.#options.db);
      throw error;
    });
    return this.#require(accountId, id);
  }

  #insert(owner: Owner, values: WebhookValues): Promise<WebhookView> {
    const { accountId } = owner;
    const { url, events = ["*"], description = "", credit_low_cents: lowCents } = values;
    const id = `wh_${randomBytes(16).toString("hex")}`;
    return this.#ofOwner(owner, async (trx) => {
      // One after the other: together, each would be the last for which there is room.
      await lockAccount(trx, "webhooksOfAccount", accountId);
      const { rows } = await sql<WebhookView>`
        insert into webhooks (id, account_id, url, events, description, credit_low_cents)
        select ${id}, ${accountId}, ${url ?? null}, ${JSON.stringify(events)}::jsonb, ${description},
          ${lowCents ?? WEBHOOK_LIMITS.creditLowCents}::int8
        where (select count(*) from webhooks where account_id = ${accountId}) < ${WEBHOOK_LIMITS.perAccount}
        returning ${VIEW}`.execute(trx);
      if (rows[0] === undefined)
        throw new KeywrightError(
          "too_many_webhooks",
          `An account has at most ${WEBHOOK_LIMITS.perAccount} webhooks: delete one, or change it.`,
        );
      return rows[0];
    });
  }

  /**
   * What the owner changes waits for a change of owner, and one for it, so that it is switched off or not made.
   * @throws KeywrightError `account_not_owned` if, as far as events tell, the account is no longer theirs: whoever
   * sends a body slowly may have been authorised long ago.
   */
  #ofOwner<T>({ accountId, wallet }: Owner, change: (trx: Trx) => Promise<T>): Promise<T> {
    return this.#options.db.transaction().execute(async (trx) => {
      await lockWebhooks(trx);
      // Materialized, so that the index of such changes is used: the newest row of all could be an account's own.
      const { rows } = await sql<{ isTheirs: boolean }>`
        with changes as materialized (
          select owner, cursor from chain_events
          where account_id = ${accountId} and owner is not null and name = any(${CHANGES_OF_OWNER}::text[])
            and not removed and not retracted
        )
        select owner is not distinct from ${wallet ?? null}::text as "isTheirs" from changes
        order by cursor desc limit 1`.execute(trx);
      if (rows[0]?.isTheirs === false)
        throw new KeywrightError("account_not_owned", "The account has another owner now, or had one a moment ago.");
      return change(trx);
    });
  }

  /**
   * Absent values stay. Switched on, it continues with what still waits. Nothing changes if the webhook was switched
   * off meanwhile, as by a change of owner. Errors as `create`; `webhook_not_found`.
   */
  async update(owner: Owner, id: string, values: WebhookValues): Promise<WebhookView> {
    const { accountId } = owner;
    const now = await this.#require(accountId, id);
    if (values.url !== undefined && now.url === null)
      throw new KeywrightError("invalid_value", "url: this webhook has none, its messages are fetched; create another");
    this.#requireHttps(values.url);
    await this.#requireSendable(values.url);
    const { url = now.url, events = now.events, description = now.description, state = now.state } = values;
    const offReason = state === "on" ? null : (now.offReason ?? "owner");
    const changed = await this.#ofOwner(owner, async (trx) => {
      const { rows } = await sql<WebhookView>`
        update webhooks set url = ${url}, events = ${JSON.stringify(events)}::jsonb, description = ${description},
          credit_low_cents = ${values.credit_low_cents ?? now.creditLowCents}::int8,
          state = ${state}, off_reason = ${offReason},
          failing_since = case when ${state} = 'on' and state = 'off' then null else failing_since end
        where id = ${id} and account_id = ${accountId} and off_reason is not distinct from ${now.offReason}
        returning ${VIEW}`.execute(trx);
      return rows[0];
    });
    return changed ?? this.#require(accountId, id);
  }

  async delete(accountId: AccountId, id: string): Promise<void> {
    await this.#require(accountId, id);
    await deleteWebhook(this.#options.db, id);
  }

  /** A message for this webhook alone. Returns its id. @throws KeywrightError `queue_full` while many wait. */
  async test(accountId: AccountId, id: string): Promise<string> {
    await this.#require(accountId, id);
    const { rows } = await sql<{ id: string }>`
      with event as (
        insert into webhook_events (id, account_id, type, data)
        select 'msg_' || replace(gen_random_uuid()::text, '-', ''), ${accountId}, 'webhook.test',
          json_build_object('webhook_id', ${id}::text)
        where (select count(*) from (select from webhook_deliveries where webhook_id = ${id} and state = 'pending'
          limit ${sql.lit(WEBHOOK_LIMITS.waitingForTest)}) waiting) < ${sql.lit(WEBHOOK_LIMITS.waitingForTest)}
        returning place, id
      ), delivery as (
        insert into webhook_deliveries (webhook_id, place) select ${id}, place from event
      )
      select id from event`.execute(this.#options.db);
    if (rows[0] !== undefined) return rows[0].id;
    const detail = `${WEBHOOK_LIMITS.waitingForTest} messages or more wait for this webhook: a test would, too.`;
    throw new KeywrightError("queue_full", detail, {}, { retryAfterSeconds: 30 });
  }

  /** Newest first. */
  async deliveries(accountId: AccountId, id: string, filter: DeliveryFilter): Promise<readonly DeliveryView[]> {
    await this.#require(accountId, id);
    const { state, before = null, limit } = filter;
    const { rows } = await sql<DeliveryView>`
      select event.id as "messageId", type, data, delivery.state, attempts, event.created_at as "createdAt",
        due_at as "dueAt", attempted_at as "attemptedAt", duration_ms as "durationMs", status, answer, failure
      from webhook_deliveries delivery join webhook_events event on event.place = delivery.place
      where webhook_id = ${id} ${state === undefined ? sql`` : sql`and delivery.state = ${state}`}
        and (${before}::text is null or delivery.place < (select place from webhook_events
          where id = ${before} and account_id = ${accountId}))
      order by delivery.place desc limit ${limit}`.execute(this.#options.db);
    return rows;
  }

  /** The given messages, or the oldest that failed, are due again under their ids. Returns how many. */
  async replay(accountId: AccountId, id: string, messageIds: readonly string[] | undefined): Promise<number> {
    await this.#require(accountId, id);
    const chosen =
      messageIds === undefined
        ? sql`state = 'failed' and place = any(array(select place from webhook_deliveries
            where webhook_id = ${id} and state = 'failed' order by place limit ${sql.lit(REPLAYED_AT_ONCE)}))`
        : sql`place in (select place from webhook_events where id = any(${[...messageIds]}::text[]))`;
    const { rows } = await sql`
      update webhook_deliveries set state = 'pending', attempts = 0, due_at = now()
      where webhook_id = ${id} and ${chosen} returning place`.execute(this.#options.db);
    return rows.length;
  }

  /** For a webhook without a URL: takes what became of earlier messages, and returns signed ones that are due. */
  async receive(accountId: AccountId, id: string, passed: readonly Passed[]): Promise<readonly FetchedMessage[]> {
    const { db, executor } = this.#options;
    if ((await this.#require(accountId, id)).url !== null)
      throw new KeywrightError("invalid_value", "id: this webhook has a URL, its messages are sent there");
    await sql`update webhooks set asked_at = now() where id = ${id}`.execute(db);
    for (const { messageId, ...attempt } of passed) await this.#passedOn(accountId, id, messageId, attempt);
    const claimed = await claim(db, id, WEBHOOK_LIMITS.receivedAtOnce);
    if (claimed.length === 0) return [];
    const { messages } = await executor.call("signWebhooks", { messages: claimed.map(({ message }) => message) });
    return claimed.flatMap(({ message }, index) => {
      const signed = messages[index];
      return signed === undefined ? [] : [{ messageId: message.id, ...signed }];
    });
  }

  async #passedOn(accountId: AccountId, webhookId: string, messageId: string, attempt: Attempt): Promise<void> {
    const { rows } = await sql<{ place: number; attempts: number; created_at: Date }>`
      select delivery.place, attempts, event.created_at from webhook_deliveries delivery
        join webhook_events event on event.place = delivery.place
      where webhook_id = ${webhookId} and event.id = ${messageId} and state = 'pending'`.execute(this.#options.db);
    const [row] = rows;
    if (row === undefined) return;
    const message = { id: messageId, type: "", timestamp: row.created_at.toISOString(), accountId, data: {} };
    await finish(this.#options.db, { webhookId, accountId, url: null, message, ...row }, attempt);
  }

  async #require(accountId: AccountId, id: string): Promise<WebhookView> {
    const { rows } = await sql<WebhookView>`
      select ${VIEW} from webhooks where id = ${id} and account_id = ${accountId}`.execute(this.#options.db);
    return found(rows[0]);
  }

  #requireHttps(url: string | undefined): void {
    if (url !== undefined && this.#options.httpsOnly && !/^https:/i.test(url))
      throw new KeywrightError("invalid_value", "url: must be https, as messages tell of an account");
  }

  async #requireSendable(url: string | undefined): Promise<void> {
    if (url === undefined) return;
    const { problem } = await this.#options.executor.call("checkWebhook", { url });
    if (problem !== undefined) throw new KeywrightError("invalid_value", `url: ${problem}`);
  }
}

function found<T>(row: T | undefined): T {
  if (row === undefined) throw new KeywrightError("webhook_not_found", "The account has no such webhook.");
  return row;
}
