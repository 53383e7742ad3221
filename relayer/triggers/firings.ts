/**
 * The rows of firings, as relayers share them: each is claimed by one instance, for one attempt. `began` is set before
 * any code may run; a row that a dead relayer left is made again only if it is not set.
 */
import { sql, type RawBuilder, type Selectable } from "kysely";
import { ERRORS, isErrorCode } from "../../protocol/errors";
import type { AccountId, Cid, KeyId } from "../../protocol/ids";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import type { Db, Trx } from "../store/database";
import { leaseExpired } from "../store/instance";
import { AT_A_TIME, inPieces, type Piece } from "../store/pieces";
import type { TriggerFiringsTable } from "../store/tables/triggers";
import type { NewFiring } from "./due";
import type { Within } from "./room";
import type { Claimed, Definition, Fired } from "./types";

/** Told in the transaction that pauses a trigger. */
export type OnPaused = (
  trx: Trx,
  trigger: { readonly id: string; readonly accountId: AccountId; readonly reason: string },
) => Promise<void>;

export interface FiringsOptions {
  readonly db: Db;
  readonly instanceId: string;
  readonly onPaused: OnPaused;
  /** SQL of the time; default: the database's clock, which all relayers share. */
  readonly now?: () => RawBuilder<Date>;
}

/** Ends that say nothing about the action or its key. */
const NO_FAILURE = new Set([
  "succeeded",
  "missed",
  "already_ran",
  "interrupted",
  "log_not_found",
  "internal_error",
  "preempted",
  "sandbox_crashed",
  "unattached",
]);
/** A run's own error may have the name of one that the service has refused it with. */
const isFailure = ({ outcome, isRefused }: Fired): boolean =>
  !NO_FAILURE.has(outcome) && !(isRefused === true && isErrorCode(outcome) && "retryable" in ERRORS[outcome]);
/** Why a trigger is paused whose firings come faster than they can be made: those that wait are made still. */
export const CROWDED = "More firings wait than the service keeps for one trigger.";
/** As well: what its contract logged in a block is more than can be read. */
export const UNREAD = "Its contract logged more in a block than any endpoint returns: some of its logs are missing.";
const isFiring = sql<boolean>`(triggers.state = 'active'
  or (triggers.state = 'paused' and triggers.reason in (${CROWDED}, ${UNREAD})))`;
/** Of a firing's trigger: one that was paused or deleted makes nothing that has not begun. */
const acts = sql<boolean>`exists (select from triggers where triggers.id = trigger_firings.trigger_id
  and ${isFiring})`;
/** What waits of a trigger ends with its pause: claims would pass over it again and again. */
export const endWaitingOf = (db: Db, triggerId: string, outcome: "paused" | "deleted"): Promise<unknown> =>
  sql`update trigger_firings set state = 'ended', outcome = ${outcome}, cause = null, ended_at = now()
    where state = 'waiting' and trigger_id = ${triggerId}
      and account_id = (select account_id from triggers where id = ${triggerId})`.execute(db);
/** The accounts for which something waits: one step in the index for each, however much waits for it. */
const BUSY = sql`busy as (
    (select account_id from trigger_firings where state = 'waiting' order by account_id limit 1)
    union all
    select (select next.account_id from trigger_firings next
      where next.state = 'waiting' and next.account_id > busy.account_id order by next.account_id limit 1)
    from busy where busy.account_id is not null
  )`;
/** A claim whose outcome was lost on the way back is noticed after this time. */
const LOST_AFTER_SECONDS = 10;

type ClaimedRow = Pick<
  Selectable<TriggerFiringsTable>,
  "id" | "trigger_id" | "account_id" | "kind" | "cause" | "due_at" | "attempt"
> & { readonly key_id: string; readonly bytes: number };

/** How large a trigger's definition is. */
export const BYTES = sql<number>`(octet_length(sealed) + coalesce(octet_length(code), 0))`;
const bytes = sql<number>`${BYTES} as bytes`;

export class Firings {
  /** Claims of this process that have not ended, and whose they are. */
  readonly #active = new Map<string, string>();
  /** Those of them that somebody waits for: whoever calls them may be many, and others' are claimed all the same. */
  readonly #own = new Set<string>();
  /** The account that was served last. */
  #served = "";
  readonly #options: FiringsOptions;

  constructor(options: FiringsOptions) {
    this.#options = options;
  }

  get #now(): RawBuilder<Date> {
    return this.#options.now?.() ?? sql<Date>`now()`;
  }

  /** Claimed from those that waited, and not ended. */
  get claimed(): number {
    return this.#active.size - this.#own.size;
  }

  /** How many each account has claimed, as JSON. */
  #claimedEach(): string {
    const each: Record<string, number> = {};
    for (const [id, account] of this.#active) if (!this.#own.has(id)) each[account] = (each[account] ?? 0) + 1;
    return JSON.stringify(each);
  }

  /**
   * Claims up to `most` firings, round after round one of each account, and goes on after the account that was served
   * last: one with thousands that wait delays nobody else's. An account's are claimed in the order in which they may be
   * made: one that is tried again comes after those that were due meanwhile. What an account has claimed already
   * counts: towards `mostEach`, as rounds it has had, and against `kept`, which is for those that have nothing.
   */
  async claim(most: number, mostEach: number, kept = 0): Promise<readonly Claimed[]> {
    const { db, instanceId } = this.#options;
    const { rows } = await sql<ClaimedRow>`
      with recursive ${BUSY}, waiting as (
        select account_id, coalesce((${this.#claimedEach()}::jsonb ->> account_id)::int4, 0) as held
        from busy where account_id is not null
      ), ordered as materialized (
        select mine.id, held + mine.turn as turn,
          row_number() over (order by held + mine.turn, account_id <= ${this.#served}, account_id) as place
        from waiting cross join lateral (
          select id, row_number() over (order by not_before, due_at, id) as turn from (
            select id, not_before, due_at from trigger_firings
            where state = 'waiting' and account_id = waiting.account_id and not_before <= ${this.#now} and ${acts}
            order by not_before, due_at, id limit greatest(0, ${mostEach}::int4 - held)
          ) first
        ) mine order by place limit ${most}
      ), picked as materialized (
        select id, place from ordered where turn = 1 or place <= ${most - kept}::int4
      ), locked as materialized (
        select id from trigger_firings where id = any(array(select id from picked)) and state = 'waiting'
        for update skip locked
      ), claimed as (
        update trigger_firings set state = 'running', instance_id = ${instanceId}, attempt = attempt + 1, began = false,
          started_at = now()
        from locked where trigger_firings.id = locked.id returning trigger_firings.*
      )
      select claimed.id, claimed.trigger_id, claimed.account_id, key_id, claimed.kind, cause, due_at, attempt, ${bytes}
      from claimed join picked on picked.id = claimed.id join triggers on triggers.id = claimed.trigger_id
      order by place`.execute(db);
    const claimed = rows.map(claimedOf);
    for (const { id, accountId } of claimed) this.#active.set(id, accountId);
    this.#served = claimed.at(-1)?.accountId ?? this.#served;
    return claimed;
  }

  /**
   * Stores a firing that this instance makes itself: a run by hand, or a hook whose caller waits. Undefined if its
   * cause has a firing already. @param within stores it there
   */
  async addOwn(firing: NewFiring, within: Within = (insert) => insert(this.#options.db)): Promise<Claimed | undefined> {
    const { id, accountId } = firing;
    // A repeated request may have the id of a run that is not over.
    const isNew = !this.#active.has(id);
    const loseIfNew = (): void => (isNew ? this.lose({ id }) : undefined);
    this.#active.set(id, accountId);
    this.#own.add(id);
    const row = await within((db) => this.#insertOwn(db, firing)).catch((error: unknown) => {
      loseIfNew();
      throw error;
    });
    if (row === undefined) loseIfNew();
    return row && claimedOf(row);
  }

  async #insertOwn(
    db: Db,
    { id, triggerId, accountId, causeKey, cause, kind, dueAt }: NewFiring,
  ): Promise<ClaimedRow | undefined> {
    const { rows } = await sql<ClaimedRow>`
      with made as (
        insert into trigger_firings (id, trigger_id, account_id, cause_key, cause, kind, state, due_at, not_before,
          instance_id, attempt, started_at)
        values (${id}, ${triggerId}, ${accountId}, ${causeKey}, ${JSON.stringify(cause) ?? null}::jsonb, ${kind},
          'running', ${dueAt}, now(), ${this.#options.instanceId}, 1, now())
        on conflict (trigger_id, cause_key) do nothing returning *
      )
      select made.id, made.trigger_id, made.account_id, key_id, made.kind, cause, due_at, attempt, ${bytes}
      from made join triggers on triggers.id = made.trigger_id`.execute(db);
    return rows[0];
  }

  async definition({ triggerId }: Pick<Claimed, "triggerId">): Promise<Definition> {
    const { sealed, cid, code } = await this.#options.db
      .selectFrom("triggers")
      .select(["sealed", "cid", "code"])
      .where("id", "=", triggerId)
      .executeTakeFirstOrThrow();
    return { sealed, cid: cid as Cid, code: code ?? undefined };
  }

  /** It could not be ended: its row is looked at again. */
  lose({ id }: Pick<Claimed, "id">): void {
    this.#active.delete(id);
    this.#own.delete(id);
  }

  /** Call before any code may run. False if the firing is no longer this instance's, or its trigger was paused. */
  async begin({ id, attempt }: Claimed): Promise<boolean> {
    const { numUpdatedRows } = await this.#options.db
      .updateTable("trigger_firings")
      .set({ began: true })
      .where("id", "=", id)
      .where("attempt", "=", attempt)
      .where("state", "=", "running")
      .where("instance_id", "=", this.#options.instanceId)
      .where(sql<boolean>`(kind = 'manual' or ${acts})`)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Nothing ran: another attempt may be made, by any instance. */
  async retry({ id, attempt }: Claimed, afterMs: number): Promise<void> {
    await sql`update trigger_firings set state = 'waiting', instance_id = null, began = false,
        not_before = ${this.#now} + ${afterMs}::float8 * interval '1 millisecond'
      where id = ${id} and attempt = ${attempt} and state = 'running'`.execute(this.#options.db);
    this.lose({ id });
  }

  /**
   * The end of a firing, and what it means for its trigger: failures in a row pause it. Not those of runs by hand,
   * which any key of the account may ask for.
   */
  async end(claimed: Claimed, fired: Fired): Promise<void> {
    const { triggerId: id, accountId, kind } = claimed;
    const { outcome } = fired;
    if (!isFailure(fired) || kind === "manual") await this.#endWell(claimed, fired);
    else
      await this.#options.db.transaction().execute(async (trx) => {
        const { rows } = await sql`${this.#ended(claimed, fired)} returning id`.execute(trx);
        if (rows.length > 0) await this.#countFailure(trx, { id, accountId, outcome });
      });
    this.lose(claimed);
  }

  /** One statement: most firings end so. */
  async #endWell(claimed: Claimed, fired: Fired): Promise<void> {
    const { outcome } = fired;
    const failures = outcome === "succeeded" ? sql`0` : sql`failures`;
    await sql`with ended as (${this.#ended(claimed, fired)} returning trigger_id)
      update triggers set failures = ${failures}, last_fired_at = now(), last_outcome = ${outcome}
      from ended where triggers.id = ended.trigger_id`.execute(this.#options.db);
  }

  /** Of an instance that was presumed dead and was not, the end of the run takes the place of `interrupted`. */
  #ended({ id, attempt }: Claimed, fired: Fired) {
    const hasRun = fired.durationMs !== undefined;
    const { outcome, detail = null, durationMs = null, costCents = null, receipt = null } = fired;
    return sql`update trigger_firings set state = 'ended', instance_id = null, outcome = ${outcome},
        detail = ${detail}::text, duration_ms = ${durationMs}::float8, cost_cents = ${costCents}::int8,
        receipt = ${receipt}::text, cause = null, ended_at = now()
      where id = ${id} and attempt = ${attempt}
        and (state = 'running' or (${hasRun}::boolean and state = 'ended' and outcome = 'interrupted'))`;
  }

  /** Also of a crowded trigger, which makes what it has gathered. */
  async #countFailure(
    trx: Trx,
    { id, accountId, outcome }: { readonly id: string; readonly accountId: AccountId; readonly outcome: string },
  ): Promise<void> {
    const most = TRIGGER_LIMITS.failuresBeforePause;
    const pauses = sql`before.fires and triggers.failures + 1 >= ${most}::int4`;
    const reason = `${most} firings in a row failed, the last one with ${outcome}.`;
    const { rows } = await sql<{ paused: boolean }>`
      with before as (select id, ${isFiring} as fires from triggers where id = ${id} for update),
      changed as (
        update triggers set failures = failures + 1, last_fired_at = now(), last_outcome = ${outcome},
          state = case when ${pauses} then 'paused' else state end,
          reason = case when ${pauses} then ${reason} else reason end
        from before where triggers.id = before.id returning fires and not ${isFiring} as paused
      )
      select paused from changed`.execute(trx);
    if (rows[0]?.paused !== true) return;
    await endWaitingOf(trx, id, "paused");
    await this.#options.onPaused(trx, { id, accountId, reason });
  }

  /** Firings of dead relayers, and of lost answers of this one, before any code ran: any instance may make them. */
  async releaseLost(): Promise<void> {
    const lost = sql`state = 'running' and not began and kind <> 'manual' and ${this.#isLost()}`;
    await inPieces(this.#options.db, () => changedWhere(lost, sql`state = 'waiting', instance_id = null`));
  }

  /** Firings that were stored while their trigger was paused. */
  async endPaused(): Promise<void> {
    const paused = sql`state = 'waiting' and not ${acts}`;
    const end = sql`state = 'ended', outcome = 'paused', cause = null, ended_at = now()`;
    await inPieces(this.#options.db, () => changedWhere(paused, end));
  }

  /** Those of which code may have run: they are not made again. */
  async interrupted(): Promise<readonly (Claimed & { readonly runId: string })[]> {
    const { rows } = await sql<ClaimedRow>`
      select trigger_firings.id, trigger_id, trigger_firings.account_id, key_id, trigger_firings.kind, cause, due_at,
        attempt, ${bytes}
      from trigger_firings join triggers on triggers.id = trigger_id
      where trigger_firings.state = 'running' and (began or trigger_firings.kind = 'manual') and ${this.#isLost()}
      limit 100`.execute(this.#options.db);
    return rows.map((row) => ({ ...claimedOf(row), runId: runIdOf(row) }));
  }

  #isLost() {
    const mine = JSON.stringify([...this.#active.keys()]);
    return sql<boolean>`(${leaseExpired("trigger_firings.instance_id")}
      or (instance_id = ${this.#options.instanceId}
        and trigger_firings.started_at < now() - ${LOST_AFTER_SECONDS} * interval '1 second'
        and not (trigger_firings.id = any(array(select jsonb_array_elements_text(${mine}::jsonb))))))`;
  }
}

const changedWhere = (condition: RawBuilder<unknown>, values: RawBuilder<unknown>): Piece => sql`
  with found as (
    select id from trigger_firings where ${condition} limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), changed as (
    update trigger_firings set ${values} from found where trigger_firings.id = found.id returning trigger_firings.id
  )
  select count(*) as changed from changed`;

/** Names the reservation of one attempt. */
export const runIdOf = ({ id, attempt }: { readonly id: string; readonly attempt: number }): string =>
  `firing-${id}-${attempt}`;

const claimedOf = (row: ClaimedRow): Claimed => ({
  id: row.id,
  triggerId: row.trigger_id,
  accountId: row.account_id as AccountId,
  keyId: row.key_id as KeyId,
  kind: row.kind,
  cause: row.cause,
  dueAt: row.due_at,
  attempt: row.attempt,
  bytes: row.bytes,
});
