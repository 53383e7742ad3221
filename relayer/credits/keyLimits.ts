/**
 * Limits of usage keys: credit in any 24 hours, runs in any minute, and origins. Credit is counted by the hour in which
 * it was held, runs by ticks of five seconds, and the whole of the oldest hour or tick counts: no span of 24 hours or
 * 60 seconds exceeds a limit, and what was used is free again up to an hour, or five seconds, later.
 */
import { sql, type RawBuilder } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, KeyId } from "../../protocol/ids";
import type { Db } from "../store/database";
import type { KeyLimits, LimitedKey, Page, Spender } from "./types";

const HOURS = 24;
const TICK_SECONDS = 5;
const TICKS = 60 / TICK_SECONDS;

/** By the database's clock, which all relayers share. */
export const THIS_HOUR = sql`floor(extract(epoch from now()) / 3600)::int8`;
const THIS_TICK = sql`floor(extract(epoch from now()) / ${sql.lit(TICK_SECONDS)})::int8`;
const FIRST_HOUR = sql`${THIS_HOUR} - ${sql.lit(HOURS)}`;
const FIRST_TICK = sql`${THIS_TICK} - ${sql.lit(TICKS)}`;

const centsUsed = sql<number>`counts_sum(cents_by_hour, ${FIRST_HOUR})`;
const runsUsed = sql<number>`counts_sum(runs_by_tick, ${FIRST_TICK})`;

/** Parts of statements that lock or update one row of `key_limits`. */
export const KEY_LIMIT = {
  /** Null without a limit, which `least` passes over. */
  freeCents: sql`cents_per_day - ${centsUsed}`,
  /** @param changes cents by hour, as jsonb */
  addCents: (changes: RawBuilder<unknown>) => sql`cents_by_hour = counts_add(cents_by_hour, ${changes}, ${FIRST_HOUR})`,
  addRun: sql`runs_by_tick = counts_add(runs_by_tick, jsonb_build_object(${THIS_TICK}, 1), ${FIRST_TICK})`,
};

export const mayRun = (origin: string | undefined): RawBuilder<unknown> =>
  sql`(${originAllowed(origin)} and (runs_per_minute is null or ${runsUsed} < runs_per_minute))`;

const originAllowed = (origin: string | undefined): RawBuilder<boolean> =>
  origin === undefined ? sql`true` : sql`(origins = '[]' or origins @> to_jsonb(${origin}::text))`;

/** Replaces all limits of the key. What counted before still counts. */
export async function setKeyLimits(db: Db, account: AccountId, key: KeyId, limits: KeyLimits): Promise<void> {
  const values = {
    cents_per_day: limits.centsPerDay ?? null,
    runs_per_minute: limits.runsPerMinute ?? null,
    origins: JSON.stringify(limits.origins),
  };
  await db
    .insertInto("key_limits")
    .values({ account_id: account, key_id: key, cents_by_hour: "{}", runs_by_tick: "{}", ...values })
    .onConflict((conflict) => conflict.columns(["account_id", "key_id"]).doUpdateSet(values))
    .execute();
}

/** The account's keys that have limits, by id. */
export async function limitedKeys(
  db: Db,
  account: AccountId,
  { number, size }: Page,
): Promise<{ items: readonly LimitedKey[]; total: number }> {
  const limited = db
    .selectFrom("key_limits")
    .where("account_id", "=", account)
    .where(sql<boolean>`(cents_per_day is not null or runs_per_minute is not null or origins <> '[]')`);
  const [rows, { total }] = await Promise.all([
    limited
      .select(["key_id", "cents_per_day", "runs_per_minute", "origins"])
      .select([centsUsed.as("cents_used"), runsUsed.as("runs_used")])
      .orderBy("key_id")
      .offset(number * size)
      .limit(size)
      .execute(),
    limited.select(({ fn }) => fn.countAll().as("total")).executeTakeFirstOrThrow(),
  ]);
  const items = rows.map((row) => ({
    keyId: row.key_id as KeyId,
    centsPerDay: row.cents_per_day ?? undefined,
    runsPerMinute: row.runs_per_minute ?? undefined,
    origins: row.origins,
    centsUsed: row.cents_used,
    runsUsed: row.runs_used,
  }));
  return { items, total: Number(total) };
}

interface HoldTerms {
  readonly kind: "write" | "run";
  readonly origin?: string | undefined;
  readonly leastCents: number;
}

/** The error, if a hold was refused because of the key's limits. */
export async function limitRefusal(
  db: Db,
  { accountId, keyId, kind, origin, leastCents }: Spender & HoldTerms,
): Promise<KeywrightError | undefined> {
  if (keyId === undefined) return undefined;
  const row = await db
    .selectFrom("key_limits")
    .select(["cents_per_day", "runs_per_minute", centsUsed.as("cents_used"), runsUsed.as("runs_used")])
    .select([originAllowed(origin).as("origin_allowed"), secondsToNextRun.as("seconds")])
    .where("account_id", "=", accountId)
    .where("key_id", "=", keyId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  if (kind === "run" && !row.origin_allowed)
    return new KeywrightError("origin_not_allowed", "The key's owner has not listed this page's origin for it.");
  const { runs_per_minute: runs, cents_per_day: cents } = row;
  if (kind === "run" && runs !== null && row.runs_used >= runs)
    return new KeywrightError("rate_limited", `The key's owner allows it ${runs} runs a minute.`, undefined, {
      retryAfterSeconds: row.seconds,
    });
  if (cents === null || cents - row.cents_used >= leastCents) return undefined;
  return new KeywrightError(
    "key_day_spent",
    "What the key may spend in 24 hours is spent. Its owner can raise the limit, or wait.",
    { required_cents: leastCents, limit_cents: cents, spent_cents: row.cents_used },
  );
}

const endOfOldest = sql`((select min(key::int8) from jsonb_each_text(runs_by_tick) where key::int8 >= ${FIRST_TICK})
  + ${sql.lit(TICKS + 1)}) * ${sql.lit(TICK_SECONDS)}`;
/** Until the oldest tick with runs does not count any more. */
const secondsToNextRun = sql<number>`coalesce(${endOfOldest} - floor(extract(epoch from now())), 1)::int8`;
