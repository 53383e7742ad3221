/**
 * Makes up for missed webhooks: the processor keeps events for 30 days, and those since the newest of the last complete
 * run (minus an hour, since some are listed late) are applied again. Unlike listing intents by date, this also finds
 * payments made long after their intent, refunds and disputes.
 */
import { sql } from "kysely";
import type Stripe from "stripe";
import type { Db } from "../../store/database";
import { applyEvent, EVENT_TYPES } from "./events";
import { ask } from "./processor";

const WATERMARK = "events_applied_until";
const OVERLAP_SECONDS = 3600;
const KEPT_SECONDS = 30 * 24 * 3600;

export interface Reconciliation {
  readonly db: Db;
  readonly stripe: Stripe;
  readonly deployment: string;
}

/**
 * Returns how many events about this deployment's payments were applied. The time to start from next is of the
 * processor's clock: this machine's may once have been ahead.
 */
export async function reconcile({ db, stripe, deployment }: Reconciliation): Promise<number> {
  const now = Math.floor(Date.now() / 1000);
  const since = Math.min((await readWatermark(db)) ?? now - KEPT_SECONDS, now);
  const events = stripe.events.list({ types: [...EVENT_TYPES], created: { gte: since - OVERLAP_SECONDS }, limit: 100 });
  let [applied, newest] = [0, since];
  await ask(async () => {
    for await (const event of events) {
      newest = Math.max(newest, event.created);
      if (await applyEvent(db, deployment, event)) applied += 1;
    }
  });
  await writeWatermark(db, newest);
  return applied;
}

async function readWatermark(db: Db): Promise<number | undefined> {
  const row = await db.selectFrom("credit_settings").select("value").where("name", "=", WATERMARK).executeTakeFirst();
  return typeof row?.value === "number" ? row.value : undefined;
}

/** Never earlier than what is stored, unless that is in the future: a clock was ahead once. */
async function writeWatermark(db: Db, seconds: number): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  await db
    .insertInto("credit_settings")
    .values({ name: WATERMARK, value: JSON.stringify(seconds) })
    .onConflict((conflict) =>
      conflict.column("name").doUpdateSet({
        value: sql`to_jsonb(greatest(least((credit_settings.value)::int8, ${now}::int8),
          (excluded.value)::int8))`,
      }),
    )
    .execute();
}
