/**
 * Reserve, settle, release: one atomic statement each. Existing rows are locked in a fixed order (reservations,
 * accounts, keys, each by id), so concurrent spenders can neither spend reserved credit nor deadlock.
 */
import { sql, type RawBuilder } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import type { Db, Trx } from "../store/database";
import { leaseExpired } from "../store/instance";
import type { ReservationState } from "../store/tables/credits";
import { KEY_LIMIT, limitRefusal, mayRun, THIS_HOUR } from "./keyLimits";
import { contraOf } from "./ledger";
import { recordedBy } from "./runRecords";
import type { RunRecord, Spender, WriteEnd } from "./types";

export interface Hold extends Spender {
  readonly id: string;
  readonly kind: "write" | "run";
  readonly instanceId: string;
  /** The hold is refused below this. */
  readonly leastCents: number;
  /** The hold takes as much of this as balance and cap allow, in whole steps. */
  readonly mostCents: number;
  readonly stepCents: number;
  /** Of the request, where it says one. */
  readonly origin?: string | undefined;
}

/** Nothing is held: the row of the account or of the key is missing. */
export const NO_ROW = Symbol("no row");

/**
 * Returns the cents held, undefined when balance, cap or the key's limits do not allow `leastCents`, or `NO_ROW`. Few
 * keys have limits, and a statement that counts them takes a third longer: it is the second one, after the first was
 * refused.
 */
export async function hold(db: Db, wanted: Hold): Promise<number | undefined | typeof NO_ROW> {
  const held = await tryHold(db, wanted, withoutLimits(wanted));
  return held === undefined && wanted.keyId !== undefined ? tryHold(db, wanted, withLimits(wanted)) : held;
}

/** What a hold's statement says about the key's limits. */
interface LimitsPart {
  readonly locked: RawBuilder<unknown>;
  readonly joined: RawBuilder<unknown>;
  readonly allowed: RawBuilder<unknown>;
  readonly freeCents: RawBuilder<unknown>;
  readonly counted: RawBuilder<unknown>;
  readonly countedHour: RawBuilder<unknown>;
}

/** Refuses a key that has limits. */
const withoutLimits = ({ accountId, keyId }: Hold): LimitsPart => ({
  locked: sql``,
  joined: sql``,
  allowed:
    keyId === undefined
      ? sql`true`
      : sql`not exists (select from key_limits where account_id = ${accountId} and key_id = ${keyId})`,
  freeCents: sql`null::int8`,
  counted: sql``,
  countedHour: sql`null::int8`,
});

const withLimits = ({ accountId, keyId, kind, origin }: Hold): LimitsPart => ({
  locked: sql`, limits as materialized (
      select key_limits.* from key_limits join key using (key_id) where account_id = ${accountId}
        for update of key_limits
    )`,
  joined: sql`left join limits on true`,
  allowed: sql`limits.key_id is null or ${kind === "run" ? mayRun(origin) : sql`true`}`,
  freeCents: KEY_LIMIT.freeCents,
  counted: sql`, limits_held as (
      update key_limits set ${KEY_LIMIT.addCents(sql`jsonb_build_object(${THIS_HOUR}, account_held.cents)`)}
        ${kind === "run" ? sql`, ${KEY_LIMIT.addRun}` : sql``}
      from account_held where account_id = ${accountId} and key_id = ${keyId}
    )`,
  countedHour: sql`(select ${THIS_HOUR} from limits)`,
});

interface KeyPart {
  readonly locked: RawBuilder<unknown>;
  readonly joined: RawBuilder<unknown>;
  readonly free: RawBuilder<unknown>;
  readonly held: RawBuilder<unknown>;
  readonly hasRows: RawBuilder<boolean>;
}

/**
 * What a hold's statement says about the key: nothing, for a caller who has none. Joined, so that a key without its row
 * is refused: its cap and limits would be null, which `least` passes over, and nothing would be counted.
 */
const keyPart = (wanted: Hold): KeyPart =>
  wanted.keyId === undefined
    ? { locked: sql``, joined: sql``, free: sql``, held: sql``, hasRows: sql`exists (select from account)` }
    : {
        locked: sql`, key as materialized (
      select key_spending.key_id, spent_cents + key_spending.reserved_cents as used from key_spending, account
      where key_spending.key_id = ${wanted.keyId} for update of key_spending
    )`,
        joined: sql`join key on true`,
        free: sql`, ${capOf(wanted)}::int8 - key.used`,
        held: sql`, key_held as (
      update key_spending set reserved_cents = reserved_cents + account_held.cents from account_held
        where key_id = ${wanted.keyId}
    )`,
        hasRows: sql`exists (select from key)`,
      };

async function tryHold(db: Db, wanted: Hold, limits: LimitsPart): Promise<number | undefined | typeof NO_ROW> {
  const key = keyPart(wanted);
  const { rows } = await sql<{ cents: number | null; hasRows: boolean }>`
    with account as materialized (
      select account_id, balance_cents - reserved_cents as free from credit_accounts
        where account_id = ${wanted.accountId} for update
    )${key.locked}${limits.locked}, possible as (
      select case when ${wanted.mostCents}::int8 = 0 then 0
        else least(${wanted.mostCents}::int8, account.free${key.free}, ${limits.freeCents}) end as cents
      from account ${key.joined} ${limits.joined}
      where ${limits.allowed}
    ), granted as materialized (
      select cents - cents % ${Math.max(wanted.stepCents, 1)}::int8 as cents from possible
        where cents >= ${wanted.leastCents}::int8
    ), account_held as (
      update credit_accounts set reserved_cents = reserved_cents + granted.cents from granted
      where account_id = ${wanted.accountId} and (granted.cents = 0 or balance_cents - reserved_cents >= granted.cents)
        returning granted.cents
    )${key.held}${limits.counted}, held as (
      insert into credit_reservations (id, kind, account_id, key_id, reserved_cents, instance_id, counted_hour)
      select ${wanted.id}, ${wanted.kind}, ${wanted.accountId}, ${wanted.keyId ?? null}, cents, ${wanted.instanceId},
        ${limits.countedHour} from account_held
      returning reserved_cents
    )
    select (select reserved_cents from held) as cents, ${key.hasRows} as "hasRows"`.execute(db);
  return rows[0]?.hasRows === true ? (rows[0].cents ?? undefined) : NO_ROW;
}

/** What a write holds: all or nothing. */
export type WriteHold = Spender & Pick<Hold, "id" | "instanceId"> & { readonly cents: number };

/** By their ids. */
export interface HeldWrites {
  readonly held: ReadonlySet<string>;
  /** Refused, since the row of the account or of the key is missing. */
  readonly withoutRow: ReadonlySet<string>;
}

/**
 * Holds credit for writes of different accounts in one statement; each is granted or refused on its own. All accounts
 * are locked before any key, each ordered by id, so that two such statements cannot deadlock.
 */
export async function holdWrites(db: Db, holds: readonly WriteHold[]): Promise<HeldWrites> {
  const wanted = JSON.stringify(
    holds.map(({ id, accountId, keyId, cents, instanceId, ...spender }) => ({
      id,
      accountId,
      keyId,
      cents,
      instanceId,
      cap: capOf(spender),
    })),
  );
  // Separate array parameters let the planner use index lookups instead of scanning all accounts.
  const accountIds = holds.map(({ accountId }) => accountId);
  const keyIds = holds.flatMap(({ keyId }) => (keyId === undefined ? [] : [keyId]));
  const { rows } = await sql<{ id: string; isHeld: boolean }>`
    with wanted as (
      select * from jsonb_to_recordset(${wanted}::jsonb) as w (id text, "accountId" text, "keyId" text, cents int8,
        "instanceId" text, cap int8)
    ), account as materialized (
      select account_id, balance_cents - reserved_cents as free from credit_accounts
      where account_id = any(${accountIds}::text[]) order by account_id for update
    ), key as materialized (
      select key_id, spent_cents + reserved_cents as used from key_spending
      where key_id = any(${keyIds}::text[]) and (select count(*) from account) > 0 order by key_id for update
    ), limits as materialized (
      select key_limits.* from key_limits where account_id = any(${accountIds}::text[])
        and key_id = any(${keyIds}::text[]) and (select count(*) from key) > 0 for update
    ), granted as materialized (
      select wanted.*, case when limits.key_id is not null then ${THIS_HOUR} end as hour
      from wanted join account on account_id = "accountId" left join key on key_id = "keyId"
        left join limits on limits.account_id = "accountId" and limits.key_id = "keyId"
        where least(free, cap - used, ${KEY_LIMIT.freeCents}) >= cents and ${HAS_KEY}
    ), account_held as (
      update credit_accounts set reserved_cents = reserved_cents + granted.cents from granted
      where account_id = any(${accountIds}::text[]) and account_id = granted."accountId"
        and balance_cents - reserved_cents >= granted.cents returning granted.*
    ), key_held as (
      update key_spending set reserved_cents = reserved_cents + account_held.cents from account_held
      where key_id = any(${keyIds}::text[]) and key_id = account_held."keyId"
    ), limits_held as (
      update key_limits set ${KEY_LIMIT.addCents(sql`jsonb_build_object(account_held.hour, account_held.cents)`)}
      from account_held where account_id = "accountId" and key_id = "keyId" and account_held.hour is not null
    ), held as (
      insert into credit_reservations (id, kind, account_id, key_id, reserved_cents, instance_id, counted_hour)
      select id, 'write', "accountId", "keyId", cents, "instanceId", hour from account_held returning id
    )
    select id, true as "isHeld" from held
    union all select id, false from wanted
      left join account on account_id = "accountId" left join key on key_id = "keyId"
      where account_id is null or not ${HAS_KEY}`.execute(db);
  const idsOf = (isHeld: boolean): ReadonlySet<string> =>
    new Set(rows.filter((row) => row.isHeld === isHeld).map(({ id }) => id));
  return { held: idsOf(true), withoutRow: idsOf(false) };
}

/** Where one is given: a key without its row has no cap that could be compared. */
const HAS_KEY = sql`("keyId" is null or key.key_id is not null)`;

/** Null without a cap, and for one that no spending reaches: the contract's are above what the database can count. */
const capOf = ({ capCents = 0 }: Pick<Spender, "capCents">): number | null =>
  capCents === 0 || capCents > Number.MAX_SAFE_INTEGER ? null : capCents;

export interface Closing {
  readonly id: string;
  readonly state: Exclude<ReservationState, "held">;
  /** Cost of the operation; capped at the reserved amount. */
  readonly costCents: number;
  /**
   * `unbound`: only if no submission is bound to it; `orphaned`: additionally only if the lease of its instance has
   * expired.
   */
  readonly only?: "unbound" | "orphaned";
  /** Stored in the same statement, also where nothing was reserved; of a late settlement by `settleLate`. */
  readonly record?: RunRecord | undefined;
}

/**
 * Closes a held reservation: posts its cost, releases the rest. Returns the cost, or undefined when it was not held
 * (any more).
 */
export async function close(db: Db, closing: Closing): Promise<number | undefined> {
  const unbound = closing.only === undefined ? sql`` : sql`and not bound`;
  const orphaned = closing.only === "orphaned" ? sql`and ${leaseExpired("instance_id")}` : sql``;
  return posted(
    db,
    closing,
    sql`update credit_reservations
      set state = ${closing.state}, cost_cents = least(${closing.costCents}::int8, reserved_cents), closed_at = now(),
        given_back = ${closing.only === "orphaned"}::boolean
      where id = ${closing.id} and state = 'held' ${unbound} ${orphaned}
      returning id, kind, account_id, key_id, reserved_cents, cost_cents, counted_hour`,
    closing.state === "settled" ? isNotLate(closing.id) : sql`true`,
  );
}

const IS_CLOSED = sql<boolean>`exists (select from closed)`;
/** What was given back is charged by `settleLate`, and recorded there: a run is recorded once, with its price. */
const isNotLate = (id: string): RawBuilder<boolean> => sql`(${IS_CLOSED}
  or not exists (select from credit_reservations where id = ${id} and (state = 'held' or given_back)))`;

/**
 * Settles a reservation released because its instance was presumed dead although it was alive and completed the
 * operation. Nothing is held for it any more, so the balance may go negative. Returns the cost, or undefined when the
 * reservation is not in that state.
 */
export async function settleLate(db: Db, closing: Closing): Promise<number | undefined> {
  return posted(
    db,
    closing,
    sql`update credit_reservations
      set state = 'settled', cost_cents = least(${closing.costCents}::int8, reserved_cents), closed_at = now()
      where id = ${closing.id} and state = 'released' and given_back
      returning id, kind, account_id, key_id, 0::int8 as reserved_cents, cost_cents, counted_hour`,
    IS_CLOSED,
  );
}

/**
 * Updates balance and key, and inserts ledger entry and record, for the reservation that `closed` closes and returns.
 * The record only if `isEnd`.
 */
async function posted(
  db: Db,
  closing: Closing,
  closed: RawBuilder<unknown>,
  isEnd: RawBuilder<boolean>,
): Promise<number | undefined> {
  const { rows } = await sql<{ cost_cents: number }>`
    with closed as (
      ${closed}
    ), account as (
      update credit_accounts set balance_cents = balance_cents - closed.cost_cents,
        entries = entries + (closed.cost_cents > 0)::int,
        reserved_cents = credit_accounts.reserved_cents - closed.reserved_cents
      from closed where credit_accounts.account_id = closed.account_id
      returning closed.id, closed.kind, closed.account_id, closed.key_id, closed.reserved_cents, closed.cost_cents,
        closed.counted_hour
    )${isByOwner(closing) ? sql`` : POSTED_TO_KEY}, posted as (
      insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key, key_id)
      select account_id, ${contraOf("run")}, -cost_cents, kind, id, kind || ':' || id, key_id from account
        where cost_cents > 0
    )${closing.record === undefined ? sql`` : recordedBy(closing.id, closing.record, isEnd)}
    select cost_cents from closed`.execute(db);
  return rows[0]?.cost_cents;
}

const POSTED_TO_KEY = sql`, key as (
      update key_spending set spent_cents = spent_cents + account.cost_cents,
        reserved_cents = key_spending.reserved_cents - account.reserved_cents
      from account where key_spending.key_id = account.key_id
      returning account.account_id, account.key_id, account.counted_hour as hour,
        account.cost_cents - account.reserved_cents as change
    ), limits as (
      update key_limits set ${KEY_LIMIT.addCents(sql`jsonb_build_object(key.hour, key.change)`)}
      from key where key_limits.account_id = key.account_id and key_limits.key_id = key.key_id and key.hour is not null
    )`;

/** Then no key has reserved anything. */
const isByOwner = ({ record }: Closing): boolean => record !== undefined && record.keyId === String(record.accountId);

/**
 * Closes the held reservations of several writes in one statement; charged ones cost what they held. Accounts and keys
 * may repeat. PostgreSQL executes parts of a statement that depend on nothing in any order: each part here takes its
 * rows from the one that has to lock before it.
 */
async function closeWrites(db: Db, ends: readonly WriteEnd[]): Promise<void> {
  if (ends.length === 0) return;
  const wanted = JSON.stringify(ends.map(({ submissionId, charged }) => ({ id: submissionId, charged })));
  await sql`
    with ends as (
      select * from jsonb_to_recordset(${wanted}::jsonb) as e (id text, charged boolean)
    ), held as materialized (
      select id, charged from credit_reservations join ends using (id) where state = 'held'
        order by id for update of credit_reservations
    ), closed as (
      update credit_reservations set state = case when held.charged then 'settled' else 'released' end,
        cost_cents = case when held.charged then reserved_cents else 0 end, closed_at = now()
      from held where credit_reservations.id = held.id and state = 'held'
      returning credit_reservations.id, kind, account_id, key_id, reserved_cents, cost_cents, counted_hour
    ), locked_accounts as materialized (
      select account_id from credit_accounts where account_id in (select account_id from closed)
        order by account_id for update
    ), locked_keys as materialized (
      select key_id from key_spending where key_id in (
        select key_id from closed where (select count(*) from locked_accounts) > 0
      ) order by key_id for update
    ), account as (
      update credit_accounts set balance_cents = balance_cents - sums.cost,
        entries = credit_accounts.entries + sums.entries,
        reserved_cents = credit_accounts.reserved_cents - sums.held
      from (
        select account_id, sum(cost_cents)::int8 as cost, sum(reserved_cents)::int8 as held,
          count(*) filter (where cost_cents > 0) as entries
        from closed join locked_accounts using (account_id) group by account_id
      ) as sums
      where credit_accounts.account_id = sums.account_id
    ), key as (
      update key_spending set spent_cents = key_spending.spent_cents + sums.cost,
        reserved_cents = key_spending.reserved_cents - sums.held
      from (select key_id, sum(cost_cents)::int8 as cost, sum(reserved_cents)::int8 as held
        from closed join locked_keys using (key_id) group by key_id) as sums
      where key_spending.key_id = sums.key_id
    ), limits as (
      update key_limits set ${KEY_LIMIT.addCents(sql`given_back.by_hour`)}
      from (
        select account_id, key_id, jsonb_object_agg(hour, change) as by_hour from (
          select account_id, key_id, counted_hour as hour, sum(cost_cents - reserved_cents) as change
          from closed join locked_keys using (key_id) where counted_hour is not null group by 1, 2, 3
        ) as hours group by 1, 2
      ) as given_back
      where key_limits.account_id = given_back.account_id and key_limits.key_id = given_back.key_id
    )
    insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key, key_id)
    select account_id, ${contraOf("run")}, -cost_cents, kind, id, kind || ':' || id, key_id from closed
      where cost_cents > 0`.execute(db);
}

/**
 * Ends writes of which some may be given back. Each of the two statements locks accounts and keys, those of the second
 * one after those of the first: where there are both, all are locked before, in the one order. A reorg is rare.
 */
export async function endWrites(trx: Trx, ends: readonly WriteEnd[]): Promise<void> {
  const undone = ends.filter(({ isUndone }) => isUndone === true);
  const closed = ends.filter(({ isUndone }) => isUndone !== true);
  if (undone.length > 0 && closed.length > 0) await lockEnds(trx, closed, undone);
  await closeWrites(trx, closed);
  await giveBack(trx, undone);
}

async function lockEnds(trx: Trx, closed: readonly WriteEnd[], undone: readonly WriteEnd[]): Promise<void> {
  interface Payer {
    readonly account_id: string;
    readonly key_id: string | null;
  }
  const { rows: held } = await sql<Payer>`select account_id, key_id from credit_reservations
    where id = any(${closed.map(({ submissionId }) => submissionId)}::text[]) and state = 'held'
    order by id for update`.execute(trx);
  const { rows: charged } = await sql<Payer>`select account_id, key_id from ledger_entries
    where posting_key = any(${undone.map(chargeOf)}::text[])`.execute(trx);
  const payers = [...held, ...charged];
  await sql`select account_id from credit_accounts
    where account_id = any(${payers.map(({ account_id: id }) => id)}::text[])
    order by account_id for update`.execute(trx);
  await sql`select key_id from key_spending
    where key_id = any(${payers.flatMap(({ key_id: id }) => (id === null ? [] : [id]))}::text[])
    order by key_id for update`.execute(trx);
}

/** The posting key of a write's charge. */
const chargeOf = ({ submissionId }: WriteEnd): string => `write:${submissionId}`;

/**
 * Gives the price of writes back by further entries: once each, since a write is charged once. What counted towards a
 * key's cap counts no more; its limits of a day keep counting it.
 */
async function giveBack(db: Db, ends: readonly WriteEnd[]): Promise<void> {
  if (ends.length === 0) return;
  const charges = ends.map(chargeOf);
  await sql`
    with charged as (
      select account_id, key_id, reference, -amount_cents as cents from ledger_entries
      where posting_key = any(${charges}::text[])
    ), posted as (
      insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key, key_id)
      select account_id, ${contraOf("correction")}, cents, 'correction', reference, 'undone:' || reference, key_id
        from charged
      on conflict (posting_key) do nothing returning account_id, key_id, amount_cents
    ), locked_accounts as materialized (
      select account_id from credit_accounts where account_id in (select account_id from posted)
        order by account_id for update
    ), account as (
      update credit_accounts set balance_cents = balance_cents + sums.cents,
        entries = credit_accounts.entries + sums.entries
      from (
        select account_id, sum(amount_cents)::int8 as cents, count(*) as entries
        from posted join locked_accounts using (account_id) group by account_id
      ) as sums
      where credit_accounts.account_id = sums.account_id
    ), locked_keys as materialized (
      select key_id from key_spending where key_id in (
        select key_id from posted where (select count(*) from locked_accounts) > 0
      ) order by key_id for update
    )
    update key_spending set spent_cents = greatest(0, spent_cents - sums.cents)
    from (select key_id, sum(amount_cents)::int8 as cents from posted join locked_keys using (key_id)
      group by key_id) as sums
    where key_spending.key_id = sums.key_id`.execute(db);
}

/** The error for a refused hold, with the amounts. */
export async function shortage(
  db: Db,
  wanted: Spender & Pick<Hold, "leastCents" | "kind" | "origin">,
): Promise<KeywrightError> {
  const limited = await limitRefusal(db, wanted);
  if (limited !== undefined) return limited;
  const spent = await keyUse(db, wanted);
  if (spent !== undefined && capOf(wanted) !== null && (wanted.capCents ?? 0) - spent < wanted.leastCents) {
    return new KeywrightError(
      "key_cap_spent",
      "The key's spending cap is spent. Its owner can raise the cap, or use another key.",
      {
        required_cents: wanted.leastCents,
        cap_cents: wanted.capCents,
        spent_cents: spent,
      },
    );
  }
  const account = await db
    .selectFrom("credit_accounts")
    .select(["balance_cents", "reserved_cents"])
    .where("account_id", "=", wanted.accountId)
    .executeTakeFirst();
  return new KeywrightError(
    "insufficient_credit",
    `This needs ${wanted.leastCents} cents of free credit. Top the account up at /billing. Nothing was charged.`,
    {
      required_cents: wanted.leastCents,
      balance_cents: account?.balance_cents ?? 0,
      reserved_cents: account?.reserved_cents ?? 0,
    },
  );
}

async function keyUse(db: Db, wanted: Spender): Promise<number | undefined> {
  if (wanted.keyId === undefined) return undefined;
  const row = await db
    .selectFrom("key_spending")
    .select(sql<number>`spent_cents + reserved_cents`.as("used"))
    .where("key_id", "=", wanted.keyId)
    .executeTakeFirst();
  return row?.used;
}
