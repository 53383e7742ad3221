/** The rows of triggers: made, listed, paused and deleted. */
import { sql, type RawBuilder, type Selectable } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, Cid, KeyId } from "../../protocol/ids";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { nextDue } from "../../protocol/schedule";
import { HOOK_HEADERS, type Settings } from "../../protocol/trigger";
import { MAX_PAGE_OFFSET, offsetOf } from "../credits/page";
import type { Page } from "../credits/types";
import type { Db, Trx } from "../store/database";
import { lockAccount } from "../store/locks";
import type { TriggerFiringsTable, TriggersTable } from "../store/tables/triggers";
import { BYTES, endWaitingOf } from "./firings";
import type { FiringView, NewTrigger, TriggerView } from "./types";

const SHOWN = [
  "id",
  "account_id",
  "key_id",
  "name",
  "kind",
  "settings",
  "cid",
  "params_sha256",
  "state",
  "reason",
  "failures",
  "next_due",
  "last_fired_at",
  "last_outcome",
  "created_at",
] as const;

/** More are not counted. */
const COUNTED_FIRINGS = MAX_PAGE_OFFSET + 1;
const { unattachedPerAccount, unattachedOfKeys, unattachedBytes } = TRIGGER_LIMITS;

export class TriggerBook {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Stored before its key is attached: no attached key is without its trigger. Repeating it changes nothing.
   * @throws KeywrightError `too_many_triggers`.
   */
  async add(trigger: NewTrigger): Promise<void> {
    const { id, accountId, keyId, name, kind, settings, cid, paramsSha256, code, sealed } = trigger;
    await this.#db.transaction().execute(async (trx) => {
      // One after the other: together, each would be the last for which there is room.
      await lockAccount(trx, "triggersOfAccount", accountId);
      if (!(await isRoomFor(trx, trigger))) return;
      await trx
        .insertInto("triggers")
        .values({
          id,
          account_id: accountId,
          key_id: keyId,
          name,
          kind,
          settings: JSON.stringify(settings),
          cid,
          params_sha256: paramsSha256,
          code: code ?? null,
          sealed,
          state: "unattached",
        })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });
  }

  /** @throws KeywrightError `trigger_not_found`. */
  async one(id: string, accountId?: AccountId): Promise<TriggerView & { readonly sealed: string }> {
    let query = this.#db
      .selectFrom("triggers")
      .select([...SHOWN, "sealed"])
      .where("id", "=", id)
      .where("state", "<>", "deleted");
    if (accountId !== undefined) query = query.where("account_id", "=", accountId);
    const row = await query.executeTakeFirst();
    if (row === undefined) throw new KeywrightError("trigger_not_found", "There is no such trigger.");
    return { ...viewOf(row), sealed: row.sealed };
  }

  /** Also one that was deleted: an answer to a request of before is given again. */
  async isHook(id: string): Promise<boolean> {
    const row = this.#db.selectFrom("triggers").select("id").where("id", "=", id).where("kind", "=", "hook");
    return (await row.executeTakeFirst()) !== undefined;
  }

  async list(
    accountId: AccountId,
    page: Page,
  ): Promise<{ readonly items: readonly TriggerView[]; readonly total: number }> {
    const own = this.#db.selectFrom("triggers").where("account_id", "=", accountId).where("state", "<>", "deleted");
    const rows = await own
      .select(SHOWN)
      .orderBy("created_at")
      .orderBy("id")
      .limit(page.size)
      .offset(page.number * page.size)
      .execute();
    const { total } = await own.select(sql<number>`count(*)::int4`.as("total")).executeTakeFirstOrThrow();
    return { items: rows.map(viewOf), total };
  }

  /**
   * Newest first, of those due in the second `until` or before when given; `total` counts as many as pages reach.
   * @throws KeywrightError `invalid_value` for a page too far from the newest one.
   */
  async firings(
    triggerId: string,
    page: Page,
    until?: number,
  ): Promise<{ readonly items: readonly FiringView[]; readonly total: number }> {
    let own = this.#db.selectFrom("trigger_firings").where("trigger_id", "=", triggerId);
    if (until !== undefined) own = own.where("due_at", "<", sql<Date>`to_timestamp(${until + 1}::float8)`);
    const counted = own.select("id").orderBy("due_at", "desc").limit(COUNTED_FIRINGS).as("counted");
    const { total } = await this.#db
      .selectFrom(counted)
      .select(sql<number>`count(*)::int4`.as("total"))
      .executeTakeFirstOrThrow();
    const offset = offsetOf(page, total < COUNTED_FIRINGS ? total : Infinity, "until");
    if (offset === undefined) return { items: [], total };
    const rows = await own
      .selectAll()
      .orderBy("due_at", "desc")
      .orderBy("id")
      .limit(page.size)
      .offset(offset)
      .execute();
    return { items: rows.map(firingOf), total };
  }

  async firing(id: string): Promise<FiringView | undefined> {
    const row = await this.#db.selectFrom("trigger_firings").selectAll().where("id", "=", id).executeTakeFirst();
    return row && firingOf(row);
  }

  /** Of one that was refused nothing is kept: whoever asks again and again without credit would fill the store. */
  async dropFiring(id: string): Promise<void> {
    await this.#db.deleteFrom("trigger_firings").where("id", "=", id).where("state", "=", "ended").execute();
  }

  /** From now on: what was due while it did not act does not fire. */
  async activate(
    id: string,
    from: readonly ("unattached" | "paused")[],
    head: number | undefined,
    now: RawBuilder<Date> = sql<Date>`now()`,
  ): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom("triggers")
        .select(["settings", "state"])
        .where("id", "=", id)
        .forUpdate()
        .executeTakeFirst();
      if (row === undefined || !(from as readonly string[]).includes(row.state)) return;
      await trx
        .updateTable("triggers")
        .set({
          state: "active",
          reason: null,
          failures: 0,
          next_due: nextOf(row.settings, await timeOf(trx, now)),
          from_block: head === undefined ? null : head + 1,
        })
        .where("id", "=", id)
        .execute();
    });
  }

  /** Its firings that wait end. Of one that the service has paused for its crowd, those that wait are not made then. */
  async pause(id: string): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      const { numUpdatedRows } = await trx
        .updateTable("triggers")
        .set({ state: "paused", reason: null })
        .where("id", "=", id)
        .where("state", "in", ["active", "paused"])
        .executeTakeFirst();
      if (numUpdatedRows > 0n) await endWaitingOf(trx, id, "paused");
    });
  }

  async rename(id: string, name: string): Promise<void> {
    await this.#db.updateTable("triggers").set({ name }).where("id", "=", id).execute();
  }

  /** Its key was not attached, and never will be. */
  async forget(id: string): Promise<void> {
    await this.#db.deleteFrom("triggers").where("id", "=", id).where("state", "=", "unattached").execute();
  }

  /** Firings that wait end; one that runs is made to its end. */
  async delete(id: string): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      await trx
        .updateTable("triggers")
        .set({ state: "deleted", next_due: null, code: null, sealed: "" })
        .where("id", "=", id)
        .execute();
      await endWaitingOf(trx, id, "deleted");
    });
  }
}

/**
 * False for one that is known. Until its owner attaches it a trigger costs nothing: those of an account are few and
 * small then.
 */
async function isRoomFor(trx: Trx, trigger: NewTrigger): Promise<boolean> {
  const { id, accountId, isAttachedByOwner, isAskedByKey } = trigger;
  const { rows } = await sql<{ known: boolean; own: number; unattached: number; bytes: number }>`
    select exists (select from triggers where id = ${id}) as known, count(*)::int4 as own,
      count(*) filter (where state = 'unattached')::int4 as unattached,
      coalesce(sum(${BYTES}) filter (where state = 'unattached'), 0)::float8 as bytes
    from triggers where account_id = ${accountId} and state <> 'deleted'`.execute(trx);
  const { known = false, own = 0, unattached = 0, bytes = 0 } = rows[0] ?? {};
  if (known) return false;
  if (own >= TRIGGER_LIMITS.perAccount)
    throw new KeywrightError("too_many_triggers", `An account has at most ${TRIGGER_LIMITS.perAccount} triggers.`);
  const part = isAskedByKey === true ? unattachedOfKeys / unattachedPerAccount : 1;
  if (isAttachedByOwner && (unattached >= part * unattachedPerAccount || bytes >= part * unattachedBytes))
    throw new KeywrightError(
      "too_many_triggers",
      `At most ${part * unattachedPerAccount} triggers, of ${part * unattachedBytes} bytes, wait to be attached.`,
    );
  return true;
}

const nextOf = (settings: Settings, now: Date): Date | null => {
  const next = "schedule" in settings ? nextDue(settings.schedule, now.getTime()) : undefined;
  return next === undefined ? null : new Date(next);
};

async function timeOf(db: Db, sqlNow: RawBuilder<Date>): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select ${sqlNow} as now`.execute(db);
  return rows[0]?.now ?? new Date();
}

const ATTACHED_AT_A_TIME = 100;

/** Triggers of ChainSecured accounts act once the contract's events show that their owner has set their keys. */
export async function attachSeen(
  db: Db,
  search: { headNumber(settings: Settings): Promise<number | undefined> },
): Promise<void> {
  const { rows } = await sql<{ id: string; settings: Settings }>`
    select id, settings from triggers where state = 'unattached' and exists (
      select from chain_events where chain_events.account_id = triggers.account_id and name = 'UsageApiKeySet'
        and not removed and not retracted and key_in_args(chain_events.args) = triggers.key_id
    ) order by random() limit ${sql.lit(ATTACHED_AT_A_TIME)}`.execute(db);
  const book = new TriggerBook(db);
  const heads = await Promise.all(
    rows.map(({ settings }) => ("event" in settings ? search.headNumber(settings).catch(() => undefined) : undefined)),
  );
  for (const [index, { id, settings }] of rows.entries()) {
    const head = heads[index];
    // Without it nobody knows from which block on its logs count: it waits.
    if (head !== undefined || !("event" in settings)) await book.activate(id, ["unattached"], head);
  }
}

const viewOf = (row: Pick<Selectable<TriggersTable>, (typeof SHOWN)[number]>): TriggerView => ({
  id: row.id,
  accountId: row.account_id as AccountId,
  keyId: row.key_id as KeyId,
  name: row.name,
  kind: row.kind,
  settings: row.settings,
  cid: row.cid as Cid,
  paramsSha256: row.params_sha256,
  state: row.state,
  reason: row.reason ?? undefined,
  failures: row.failures,
  nextDue: row.state === "active" ? (row.next_due ?? undefined) : undefined,
  lastFiredAt: row.last_fired_at ?? undefined,
  lastOutcome: row.last_outcome ?? undefined,
  createdAt: row.created_at,
});

const firingOf = (row: Selectable<TriggerFiringsTable>): FiringView => ({
  id: row.id,
  triggerId: row.trigger_id,
  kind: row.kind,
  cause: row.cause_key,
  state: row.state,
  dueAt: row.due_at,
  outcome: row.outcome ?? undefined,
  detail: row.detail ?? undefined,
  durationMs: row.duration_ms ?? undefined,
  costCents: row.cost_cents ?? undefined,
  receipt: row.receipt ?? undefined,
  startedAt: row.started_at ?? undefined,
  endedAt: row.ended_at ?? undefined,
});

/** Those of a request's headers that the verification of hooks reads. */
export const hookHeadersOf = (header: (name: string) => string | undefined): Record<string, string> =>
  Object.fromEntries(
    HOOK_HEADERS.flatMap((name) => {
      const value = header(name);
      return value === undefined ? [] : [[name, value.slice(0, 1_024)]];
    }),
  );
