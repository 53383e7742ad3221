/**
 * Deliveries as rows: which webhooks have one that is due, who attempts it, and what came of it. An attempt moves its
 * delivery's time past the longest attempt: if this process dies meanwhile, any relayer repeats it from then on.
 */
import { sql, type Selectable } from "kysely";
import type { WebhookMessage } from "../../protocol/webhookCalls";
import type { AccountId } from "../../protocol/ids";
import { WEBHOOK_LIMITS, WEBHOOK_RETRY_SECONDS } from "../../protocol/limits";
import { webhookBody } from "../../protocol/webhooks";
import type { Db, Trx } from "../store/database";
import { enqueue } from "../store/outbox";
import type { WebhookDeliveriesTable, WebhookEventsTable, WebhooksTable } from "../store/tables/webhooks";
import { storable } from "../store/values";

/** More than the time that an attempt may take. */
const LEASE_SECONDS = 20;
/** Longer for messages that a client fetches and passes on itself. */
const FETCHED_LEASE_SECONDS = 60;
const MAX_WEBHOOKS = 1_000;
/** Spreads the attempts for receivers that fail together. */
const JITTER = 0.1;
const GONE = 410;
/** An attempt that did not take place is made again after as long as its message has waited, within these bounds. */
const SOONEST_SECONDS = 2;
const LATEST_SECONDS = 30;

export interface DueWebhook {
  readonly webhookId: string;
  readonly accountId: AccountId;
}

export interface Claimed extends DueWebhook {
  readonly place: number;
  readonly url: string | null;
  readonly attempts: number;
  readonly message: WebhookMessage;
}

/** What came of an attempt: a status, or why there is none. */
export interface Attempt {
  readonly durationMs?: number | undefined;
  readonly status?: number | undefined;
  readonly answer?: string | undefined;
  readonly failure?: string | undefined;
}

/** The webhooks that wait for something: one step in the index for each, however much they wait for. */
const BUSY = sql`busy as (
    (select webhook_id from webhook_deliveries where state = 'pending' order by webhook_id limit 1)
    union all
    select (select next.webhook_id from webhook_deliveries next
      where next.state = 'pending' and next.webhook_id > busy.webhook_id order by next.webhook_id limit 1)
    from busy where busy.webhook_id is not null
  )`;
const FIRST_DUE = sql`select due_at from webhook_deliveries
  where webhook_id = webhooks.id and webhook_deliveries.state = 'pending' order by due_at limit 1`;
const WAITING = sql`busy join webhooks on webhooks.id = busy.webhook_id and webhooks.state = 'on'`;

/** Webhooks with a URL and a delivery that is due, in any order; accounts take turns. */
export async function dueWebhooks(db: Db): Promise<readonly DueWebhook[]> {
  const { rows } = await sql<DueWebhook>`
    with recursive ${BUSY}
    select webhooks.id as "webhookId", account_id as "accountId" from ${WAITING}
    where url is not null and (${FIRST_DUE}) <= now()
    order by row_number() over (partition by account_id order by random()), random()
    limit ${sql.lit(MAX_WEBHOOKS)}`.execute(db);
  return rows;
}

/** For how long the most overdue delivery to a receiver that works has been due, in seconds. */
export async function lateness(db: Db): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    with recursive ${BUSY}
    select coalesce(greatest(0, extract(epoch from now() - min((${FIRST_DUE})))), 0)::float8 as seconds from ${WAITING}
    where url is not null and failing_since is null`.execute(db);
  return rows[0]?.seconds ?? 0;
}

type ClaimedRow = Selectable<WebhookEventsTable> &
  Pick<Selectable<WebhookDeliveriesTable>, "webhook_id" | "attempts"> &
  Pick<Selectable<WebhooksTable>, "url">;

/**
 * Takes the deliveries of a webhook that have been due longest, in the order of their events; nobody else has them.
 * One whose message is too long to be signed is not among them: it has failed for good.
 */
export async function claim(db: Db, webhookId: string, most = 1): Promise<readonly Claimed[]> {
  const { rows } = await sql<ClaimedRow>`
    with due as materialized (
      select delivery.place from webhook_deliveries delivery
      where delivery.webhook_id = ${webhookId} and delivery.state = 'pending' and delivery.due_at <= now()
        and exists (select from webhooks where id = ${webhookId} and webhooks.state = 'on')
      order by delivery.due_at, delivery.place limit ${most} for update skip locked
    ), claimed as (
      update webhook_deliveries set attempted_at = now(), due_at = now() + interval '1 second' * (
        select case when url is null then ${sql.lit(FETCHED_LEASE_SECONDS)} else ${sql.lit(LEASE_SECONDS)} end
        from webhooks where id = ${webhookId})
      from due where webhook_deliveries.webhook_id = ${webhookId} and webhook_deliveries.place = due.place
      returning webhook_deliveries.*
    )
    select webhook_id, claimed.place, url, attempts, webhook_events.id, webhook_events.account_id, type, data,
      webhook_events.created_at
    from claimed join webhook_events on webhook_events.place = claimed.place
      join webhooks on webhooks.id = claimed.webhook_id
    order by claimed.place`.execute(db);
  const claimed = rows.map(claimedOf);
  const tooLong = claimed.filter(({ message }) => Buffer.byteLength(webhookBody(message)) > WEBHOOK_LIMITS.bodyBytes);
  for (const one of tooLong) await giveUp(db, one, `the message is longer than ${WEBHOOK_LIMITS.bodyBytes} bytes`);
  return claimed.filter((one) => !tooLong.includes(one));
}

const claimedOf = (row: ClaimedRow): Claimed => ({
  webhookId: row.webhook_id,
  accountId: row.account_id as AccountId,
  place: row.place,
  url: row.url,
  attempts: row.attempts,
  message: {
    id: row.id,
    type: row.type,
    timestamp: row.created_at.toISOString(),
    accountId: row.account_id as AccountId,
    data: row.data,
  },
});

/** The attempt did not take place: it is made again soon, and does not count against the receiver. */
export async function putBack(db: Db, { webhookId, place, message }: Claimed): Promise<void> {
  const waited = sql`extract(epoch from now() - ${message.timestamp}::timestamptz)`;
  const wait = sql`least(greatest(${waited}, ${sql.lit(SOONEST_SECONDS)}), ${sql.lit(LATEST_SECONDS)})`;
  await sql`update webhook_deliveries set due_at = now() + ${wait} * interval '1 second'
    where webhook_id = ${webhookId} and place = ${place} and state = 'pending'`.execute(db);
}

/** No attempt can succeed, whoever the receiver is. */
async function giveUp(db: Db, { webhookId, place }: Claimed, failure: string): Promise<void> {
  await sql`update webhook_deliveries set state = 'failed', failure = ${failure}
    where webhook_id = ${webhookId} and place = ${place} and state = 'pending'`.execute(db);
}

export const isDelivered = ({ status = 0, failure }: Attempt): boolean =>
  failure === undefined && status >= 200 && status < 300;

/** Stores what came of an attempt; of two for the same delivery, a success stays. */
export async function finish(db: Db, claimed: Claimed, attempt: Attempt): Promise<void> {
  const wait = isDelivered(attempt) ? undefined : WEBHOOK_RETRY_SECONDS[claimed.attempts];
  const state = isDelivered(attempt) ? "delivered" : wait === undefined ? "failed" : "pending";
  const jittered = (wait ?? 0) * (1 - JITTER + 2 * JITTER * Math.random());
  await db.transaction().execute(async (trx) => {
    const { webhookId, place } = claimed;
    await trx
      .updateTable("webhook_deliveries")
      .set({
        ...{ state, attempts: sql<number>`attempts + 1`, due_at: sql<Date>`now() + ${jittered} * interval '1 second'` },
        ...{ status: attempt.status ?? null, duration_ms: attempt.durationMs ?? null },
        ...{ answer: kept(attempt.answer), failure: kept(attempt.failure) },
      })
      .where("webhook_id", "=", webhookId)
      .where("place", "=", place)
      .where("state", "=", "pending")
      .execute();
    if (state === "delivered") await markSuccess(trx, webhookId);
    else await markFailure(trx, claimed, { isGone: attempt.status === GONE, isLast: state === "failed" });
  });
}

const kept = (text: string | undefined): string | null =>
  text === undefined ? null : storable(text, WEBHOOK_LIMITS.answerBytes);

async function markSuccess(trx: Trx, webhookId: string): Promise<void> {
  await sql`update webhooks set succeeded_at = now(), failing_since = null where id = ${webhookId}
    and (failing_since is not null or succeeded_at is null or succeeded_at < now() - interval '1 minute')`.execute(trx);
}

/** Off, if the receiver says that it is gone, or nothing has arrived since the event whose last attempt this was. */
async function markFailure(
  trx: Trx,
  { webhookId, accountId, message }: Claimed,
  { isGone, isLast }: { readonly isGone: boolean; readonly isLast: boolean },
): Promise<void> {
  await sql`update webhooks set failing_since = now() where id = ${webhookId} and failing_since is null`.execute(trx);
  if (!isGone && !isLast) return;
  const isUnheard = sql`(succeeded_at is null or succeeded_at < ${message.timestamp}::timestamptz)`;
  if (isGone) await switchOff(trx, { webhookId, accountId }, "gone");
  else await switchOff(trx, { webhookId, accountId }, "unreachable", isUnheard);
}

async function switchOff(
  trx: Trx,
  { webhookId, accountId }: DueWebhook,
  reason: "gone" | "unreachable" | "too_many",
  condition = sql`true`,
): Promise<void> {
  const { rows } = await sql`update webhooks set state = 'off', off_reason = ${reason}
    where id = ${webhookId} and state = 'on' and ${condition} returning id`.execute(trx);
  if (rows.length > 0) await enqueue(trx, accountId, "webhook.off", { webhook_id: webhookId, reason });
}

/** Switches webhooks off for which too much waits. */
export async function switchOffFlooded(db: Db, most: number = WEBHOOK_LIMITS.waiting): Promise<void> {
  const { rows } = await sql<DueWebhook>`
    with recursive ${BUSY}
    select webhooks.id as "webhookId", account_id as "accountId" from ${WAITING}
    where exists (select from webhook_deliveries where webhook_id = webhooks.id
      and webhook_deliveries.state = 'pending' order by due_at offset ${most}::int8 limit 1)`.execute(db);
  for (const webhook of rows) await db.transaction().execute((trx) => switchOff(trx, webhook, "too_many"));
}
