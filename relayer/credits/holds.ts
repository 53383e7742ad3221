/**
 * Reserve, settle, release: one statement each, and that statement decides. Under any number of concurrent spenders the rows it locks are the account's,
 * then the key's, then its own reservation; so nobody can spend what another has reserved, and nobody waits for somebody who waits for him.
 */
import { sql } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import type { Db } from "../store/database";
import { leaseExpired } from "../store/instance";
import type { ReservationState } from "../store/tables/credits";
import { contraOf } from "./ledger";
import { recordedBy } from "./runRecords";
import type { RunRecord, Spender, WriteEnd } from "./types";

export interface Hold extends Spender {
  readonly id: string;
  readonly kind: "write" | "run";
  readonly instanceId: string;
  /** Less than this is not worth starting: the hold is refused. */
  readonly leastCents: number;
  /** As much of this as balance and cap allow, in whole steps. */
  readonly mostCents: number;
  readonly stepCents: number;
}

/** Cents held, or undefined when balance or cap do not allow `leastCents`. The account's row (and the key's) has to exist. */
export async function hold(db: Db, wanted: Hold): Promise<number | undefined> {
  const { rows } = await sql<{ reserved_cents: number }>`
    with account as materialized (
      select account_id, balance_cents - reserved_cents as free from credit_accounts where account_id = ${wanted.accountId} for update
    ), key as materialized (
      select key_spending.key_id, spent_cents + key_spending.reserved_cents as used from key_spending, account
      where key_spending.key_id = ${wanted.keyId ?? null} for update of key_spending
    ), possible as (
      select case when ${wanted.mostCents}::int8 = 0 then 0 else least(${wanted.mostCents}::int8, account.free, ${capOf(wanted)}::int8 - key.used) end as cents
      from account left join key on true
    ), granted as materialized (
      select cents - cents % ${Math.max(wanted.stepCents, 1)}::int8 as cents from possible where cents >= ${wanted.leastCents}::int8
    ), account_held as (
      update credit_accounts set reserved_cents = reserved_cents + granted.cents from granted
      where account_id = ${wanted.accountId} and (granted.cents = 0 or balance_cents - reserved_cents >= granted.cents) returning granted.cents
    ), key_held as (
      update key_spending set reserved_cents = reserved_cents + account_held.cents from account_held where key_id = ${wanted.keyId ?? null}
    )
    insert into credit_reservations (id, kind, account_id, key_id, reserved_cents, instance_id)
    select ${wanted.id}, ${wanted.kind}, ${wanted.accountId}, ${wanted.keyId ?? null}, cents, ${wanted.instanceId} from account_held
    returning reserved_cents`.execute(db);
  return rows[0]?.reserved_cents;
}

const capOf = (spender: Spender): number | null => spender.capCents || null;

export interface Closing {
  readonly id: string;
  readonly state: Exclude<ReservationState, "held">;
  /** What the act came to; more than was reserved is never taken. */
  readonly costCents: number;
  /** `unbound`: only if it came to belong to no submission; `orphaned`: and if the instance that answers for it is gone. */
  readonly only?: "unbound" | "orphaned";
  /** Written down with it, also where there was nothing to reserve. */
  readonly record?: RunRecord | undefined;
}

/** Closes a held reservation: posts its cost, gives the rest back. Returns the cost, or undefined when it was not held (any more). */
export async function close(db: Db, closing: Closing): Promise<number | undefined> {
  const unbound = closing.only === undefined ? sql`` : sql`and not bound`;
  const orphaned = closing.only === "orphaned" ? sql`and ${leaseExpired("instance_id")}` : sql``;
  const { rows } = await sql<{ cost_cents: number }>`
    with closed as (
      update credit_reservations set state = ${closing.state}, cost_cents = least(${closing.costCents}::int8, reserved_cents), closed_at = now()
      where id = ${closing.id} and state = 'held' ${unbound} ${orphaned}
      returning id, kind, account_id, key_id, reserved_cents, cost_cents
    ), account as (
      update credit_accounts set balance_cents = balance_cents - closed.cost_cents, entries = entries + (closed.cost_cents > 0)::int, reserved_cents = credit_accounts.reserved_cents - closed.reserved_cents
      from closed where credit_accounts.account_id = closed.account_id
      returning closed.id, closed.kind, closed.account_id, closed.key_id, closed.reserved_cents, closed.cost_cents
    ), key as (
      update key_spending set spent_cents = spent_cents + account.cost_cents, reserved_cents = key_spending.reserved_cents - account.reserved_cents
      from account where key_spending.key_id = account.key_id
    ), posted as (
      insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key, key_id)
      select account_id, ${contraOf("run")}, -cost_cents, kind, id, kind || ':' || id, key_id from account where cost_cents > 0
    )${closing.record === undefined ? sql`` : recordedBy(closing.id, closing.record)}
    select cost_cents from closed`.execute(db);
  return rows[0]?.cost_cents;
}

/** Closes the held reservations of several writes in one statement: those that were charged cost what they held. Accounts and keys may repeat. */
export async function closeWrites(db: Db, ends: readonly WriteEnd[]): Promise<void> {
  const wanted = JSON.stringify(ends.map(({ submissionId, charged }) => ({ id: submissionId, charged })));
  await sql`
    with ends as (
      select * from jsonb_to_recordset(${wanted}::jsonb) as e (id text, charged boolean)
    ), closed as (
      update credit_reservations set state = case when ends.charged then 'settled' else 'released' end,
        cost_cents = case when ends.charged then reserved_cents else 0 end, closed_at = now()
      from ends where credit_reservations.id = ends.id and state = 'held'
      returning credit_reservations.id, kind, account_id, key_id, reserved_cents, cost_cents
    ), account as (
      update credit_accounts set balance_cents = balance_cents - sums.cost, entries = credit_accounts.entries + sums.entries,
        reserved_cents = credit_accounts.reserved_cents - sums.held
      from (
        select account_id, sum(cost_cents)::int8 as cost, sum(reserved_cents)::int8 as held, count(*) filter (where cost_cents > 0) as entries
        from closed group by account_id
      ) as sums
      where credit_accounts.account_id = sums.account_id
    ), key as (
      update key_spending set spent_cents = key_spending.spent_cents + sums.cost, reserved_cents = key_spending.reserved_cents - sums.held
      from (select key_id, sum(cost_cents)::int8 as cost, sum(reserved_cents)::int8 as held from closed where key_id is not null group by key_id) as sums
      where key_spending.key_id = sums.key_id
    )
    insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key, key_id)
    select account_id, ${contraOf("run")}, -cost_cents, kind, id, kind || ':' || id, key_id from closed where cost_cents > 0`.execute(db);
}

/** Why a hold was refused, in figures. */
export async function shortage(db: Db, wanted: Hold): Promise<KeywrightError> {
  const spent = await keyUse(db, wanted);
  if (spent !== undefined && capOf(wanted) !== null && (wanted.capCents ?? 0) - spent < wanted.leastCents) {
    return new KeywrightError("key_cap_spent", "The key's spending cap is spent. Its owner can raise the cap, or use another key.", {
      required_cents: wanted.leastCents,
      cap_cents: wanted.capCents,
      spent_cents: spent,
    });
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

async function keyUse(db: Db, wanted: Hold): Promise<number | undefined> {
  if (wanted.keyId === undefined) return undefined;
  const row = await db
    .selectFrom("key_spending")
    .select(sql<number>`spent_cents + reserved_cents`.as("used"))
    .where("key_id", "=", wanted.keyId)
    .executeTakeFirst();
  return row?.used;
}
