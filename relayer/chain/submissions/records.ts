/**
 * Submissions in the store. Every state change is one statement or transaction conditional on the state it starts from,
 * so that two relayers, even one presumed dead, can never both make it.
 */
import { sql } from "kysely";
import type { AccountId } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import { leaseExpired } from "../../store/instance";
import type { SubmissionFailure, SubmissionHooks, SubmissionId, SubmissionOutcome } from "../types";
import { takeBatchNonce, takeNonce, type NewBatch, type NewSubmission } from "./newRows";
import { writeOutcomes } from "./outcomeRows";
import { cancelSubmission } from "./operations";
import { BATCH, newSubmissionId, type AttemptRow, type Outcome, type SubmissionRow, type Unit } from "./rows";
import { failedBatches, lockMember, putBack, type Alone, type FailedBatch } from "./separatedRows";
import { hasOutcome, IS_OPEN, OPEN_LITERALS, type SubmissionState } from "./states";

/** Another instance watches the submission now; this one must not continue. */
export class LostSubmission extends Error {
  override readonly name = "LostSubmission";
}

/** Another write has used the idempotency key. */
export class RepeatedKey extends Error {
  override readonly name = "RepeatedKey";
}

const AT_A_TIME = 200;

export class SubmissionRecords {
  readonly #db: Db;
  readonly #instanceId: string;
  readonly #hooks: SubmissionHooks;

  constructor(db: Db, instanceId: string, hooks: SubmissionHooks) {
    this.#db = db;
    this.#instanceId = instanceId;
    this.#hooks = hooks;
  }

  /**
   * Takes the lane's next nonce and stores the submission, in one transaction. Undefined when another write of the
   * account came first or the lane is draining: simulate again. Throws RepeatedKey.
   */
  async begin(submission: NewSubmission): Promise<SubmissionRow | undefined> {
    try {
      if (!submission.billed) return await takeNonce(this.#db, this.#instanceId, submission);
      return await this.#db.transaction().execute(async (trx) => {
        const row = await takeNonce(trx, this.#instanceId, submission);
        if (row !== undefined) await this.#hooks.onBegin([submission.id], trx);
        return row;
      });
    } catch (error) {
      if ((error as { constraint?: unknown }).constraint === "submissions_idempotency_key_key") throw new RepeatedKey();
      throw error;
    }
  }

  /**
   * Like `begin` for writes of different accounts: one nonce, one row for the batch, one per write. Writes missing from
   * the result missed their turn, or their idempotency key was used. Undefined when none is left, or the lane is
   * draining.
   */
  async beginBatch(batch: NewBatch): Promise<Unit | undefined> {
    const billed = new Set(batch.writes.filter((write) => write.billed).map(({ id }) => id));
    if (billed.size === 0) return takeBatchNonce(this.#db, this.#instanceId, batch);
    return this.#db.transaction().execute(async (trx) => {
      const unit = await takeBatchNonce(trx, this.#instanceId, batch);
      const bound = unit?.members.map(({ id }) => id as SubmissionId).filter((id) => billed.has(id)) ?? [];
      if (bound.length > 0) await this.#hooks.onBegin(bound, trx);
      return unit;
    });
  }

  /** Begins a gas transfer to a payer on the admin payer's lane; undefined while another top-up of it is pending. */
  async beginTopUp(toPayer: number, amountWei: bigint): Promise<SubmissionRow | undefined> {
    const { rows } = await sql<SubmissionRow>`
      with lane as (
        update lanes set next_nonce = next_nonce + 1
        where payer = 0 and not exists (select from submissions where to_payer = ${toPayer} and ${IS_OPEN})
        returning next_nonce - 1 as nonce
      )
      insert into submissions (id, kind, state, payer, nonce, to_payer, amount_wei, gas_limit, instance_id)
      select ${newSubmissionId()}, 'top_up', 'reserved', 0, nonce, ${toPayer}::int4, ${amountWei.toString()}::numeric,
        21000, ${this.#instanceId}
      from lane returning *`.execute(this.#db);
    return rows[0];
  }

  /** Stores signed bytes before they are sent. Throws LostSubmission. */
  async addAttempt(row: SubmissionRow, attempt: Omit<AttemptRow, "created_at" | "submission_id">): Promise<AttemptRow> {
    const { rows } = await sql<AttemptRow>`
      with held as (
        update submissions set state = case when state = 'reserved' then 'signed' else state end, updated_at = now()
        where id = ${row.id} and instance_id = ${this.#instanceId} and ${IS_OPEN}
        returning id
      )
      insert into submission_attempts (hash, submission_id, does, raw, max_fee, priority_fee)
      select ${attempt.hash}, id, ${attempt.does}, ${attempt.raw}, ${attempt.max_fee}::numeric,
        ${attempt.priority_fee}::numeric from held
      on conflict (hash) do update set raw = excluded.raw
      returning *`.execute(this.#db);
    if (rows[0] === undefined) throw new LostSubmission();
    return rows[0];
  }

  async attempts(id: string): Promise<AttemptRow[]> {
    return this.#db
      .selectFrom("submission_attempts")
      .selectAll()
      .where("submission_id", "=", id)
      .orderBy("created_at")
      .execute();
  }

  /** A node accepted or already knows the transaction. */
  async markSent(id: string): Promise<void> {
    await sql`update submissions set state = 'sent', updated_at = now() where id = ${id} and state = 'signed'`.execute(
      this.#db,
    );
  }

  /** The members of a batch, in order. */
  async members(batchId: string): Promise<SubmissionRow[]> {
    return this.#db.selectFrom("submissions").selectAll().where("batch_id", "=", batchId).orderBy("place").execute();
  }

  cancel(id: string): Promise<boolean> {
    return cancelSubmission(this.#db, id);
  }

  /**
   * Stores the outcomes of a unit and its members, frees the accounts' turns and notifies credits, in one transaction.
   * The first writer wins; the resulting rows are returned. After a reorg, an outcome different from the reported one
   * becomes `changed`; credits are not notified again.
   */
  async end({ row, members }: Unit, outcomes: ReadonlyMap<string, Outcome>): Promise<Unit> {
    const all = [row, ...members];
    // A single statement is its own transaction; notifying credits requires an explicit one.
    const ended = all.some(({ billed }) => billed)
      ? await this.#db.transaction().execute(async (trx) => {
          const written = await writeOutcomes(trx, all, outcomes);
          await this.#notifyCredits(
            trx,
            written.filter(({ before }) => before === null),
          );
          return written;
        })
      : await writeOutcomes(this.#db, all, outcomes);
    const byId = new Map(ended.map((now) => [now.id, now]));
    const own = byId.get(row.id);
    if (own === undefined) return this.#overtaken(row, outcomes);
    return { row: own, members: members.map((member) => byId.get(member.id) ?? member) };
  }

  /** Batches that failed as a whole and have open members; batches of payers' writes only once final at `depth`. */
  failedBatches(depth: number): Promise<readonly FailedBatch[]> {
    return failedBatches(this.#db, depth);
  }

  /** Gives a member of a failed batch a nonce of its own; undefined when another instance was first. */
  putBack(batch: FailedBatch, alone: Alone): Promise<SubmissionRow | undefined> {
    return putBack(this.#db, this.#instanceId, batch, alone);
  }

  /** Stores the failure of a failed batch's member that would fail alone, too. It is not charged. */
  async failSeparated(
    batch: FailedBatch,
    member: SubmissionRow,
    error: SubmissionFailure,
  ): Promise<SubmissionRow | undefined> {
    const { transactionHash, block: number, blockHash: hash } = batch;
    const outcome = { state: "failed", transactionHash, block: { number, hash }, error, charged: false } as const;
    return this.#db.transaction().execute(async (trx) => {
      if (!(await lockMember(trx, batch, member.id))) return undefined;
      const [ended] = await writeOutcomes(trx, [member], new Map([[member.id, outcome]]));
      if (ended !== undefined) await this.#notifyCredits(trx, [ended]);
      return ended;
    });
  }

  /**
   * Another instance stored the outcome, or a reorg intervened: returns the current unit, or tries again while it is
   * open.
   */
  async #overtaken(row: SubmissionRow, outcomes: ReadonlyMap<string, Outcome>): Promise<Unit> {
    const current = await this.unit(row.id);
    if (current === undefined) throw new LostSubmission();
    return hasOutcome(current.row.state) ? current : this.end(current, outcomes);
  }

  async unit(id: string): Promise<Unit | undefined> {
    const row = await this.load(id);
    return row === undefined ? undefined : { row, members: row.kind === BATCH ? await this.members(id) : [] };
  }

  /**
   * Abandons a unit that was never signed: its nonce is returned if it is the lane's highest, otherwise a filler takes
   * it over. Throws LostSubmission.
   */
  async giveUpUnsigned(
    { row }: Unit,
    error: SubmissionFailure,
  ): Promise<{ readonly unit: Unit; readonly filler: SubmissionRow | undefined }> {
    return this.#db.transaction().execute(async (trx) => {
      const { numUpdatedRows: given } = await trx
        .updateTable("lanes")
        .set({ next_nonce: sql`next_nonce - 1` })
        .where("payer", "=", row.payer)
        .where(sql<boolean>`next_nonce = ${row.nonce} + 1`)
        .executeTakeFirst();
      const { rows: failed } = await sql<SubmissionRow>`
        with given_up as (
          update submissions set state = 'failed', nonce = null, error = ${JSON.stringify(error)}::jsonb,
            instance_id = null, updated_at = now()
          where id = ${row.id} and state = 'reserved' and instance_id = ${this.#instanceId} returning *
        ), members as (
          update submissions set state = 'failed', error = given_up.error, updated_at = now()
          from given_up where submissions.batch_id = given_up.id returning submissions.*
        )
        select * from given_up union all select * from members`.execute(trx);
      const own = failed.find(({ id }) => id === row.id);
      if (own === undefined) throw new LostSubmission();
      await this.#notifyCredits(trx, failed);
      const filler = given > 0n || row.nonce === null ? undefined : await this.insertFiller(trx, row.payer, row.nonce);
      return { unit: { row: own, members: failed.filter(({ batch_id }) => batch_id === row.id) }, filler };
    });
  }

  /** A submission of the service itself that only fills a nonce. */
  insertFiller(trx: Db | Trx, payer: number, nonce: number): Promise<SubmissionRow | undefined> {
    return trx
      .insertInto("submissions")
      .values({
        id: newSubmissionId(),
        kind: "filler",
        state: "reserved",
        payer,
        nonce,
        gas_limit: 21_000,
        cancelled: true,
        instance_id: this.#instanceId,
      })
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .executeTakeFirst();
  }

  /**
   * Takes over open submissions that are unwatched or whose monitor's lease expired, and this instance's own that it
   * does not watch (because the store failed between two steps).
   */
  async takeOver(watchedIds: readonly string[]): Promise<SubmissionRow[]> {
    const orphans = this.#db
      .selectFrom("submissions")
      .select("id")
      .where(IS_OPEN)
      .where("batch_id", "is", null)
      .where((eb) =>
        eb.or([
          eb("instance_id", "is", null),
          leaseExpired("submissions.instance_id"),
          sql<boolean>`(instance_id = ${this.#instanceId} and not id = any(${[...watchedIds]}::text[]))`,
        ]),
      )
      .orderBy("payer")
      .orderBy("nonce")
      .limit(AT_A_TIME)
      .forUpdate()
      .skipLocked();
    return this.#db
      .updateTable("submissions")
      .set({ instance_id: this.#instanceId })
      .where("id", "in", orphans)
      .returningAll()
      .execute();
  }

  /** Releases submissions, so that any instance may take them over at once. */
  async release(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#db
      .updateTable("submissions")
      .set({ instance_id: null })
      .where("id", "in", [...ids])
      .where("instance_id", "=", this.#instanceId)
      .execute();
  }

  async payerAddress(payer: number): Promise<string> {
    const lane = await this.#db
      .selectFrom("lanes")
      .select("address")
      .where("payer", "=", payer)
      .executeTakeFirstOrThrow();
    return lane.address;
  }

  async load(id: string): Promise<SubmissionRow | undefined> {
    return this.#db.selectFrom("submissions").selectAll().where("id", "=", id).executeTakeFirst();
  }

  /** For the caller: a member of a batch is as far as its batch until it has its own outcome. */
  async loadForCaller(id: string): Promise<SubmissionRow | undefined> {
    const row = await this.load(id);
    if (row === undefined || row.batch_id === null || hasOutcome(row.state)) return row;
    const batch = await this.load(row.batch_id);
    return batch === undefined || hasOutcome(batch.state) ? row : { ...row, state: batch.state };
  }

  /** How many writes are in each open state; a batch's members are as far as the batch. */
  async openByState(): Promise<Readonly<Partial<Record<SubmissionState, number>>>> {
    const { rows } = await sql<{ state: SubmissionState; count: number }>`
      select case when batch.state in (${OPEN_LITERALS}) then batch.state else submissions.state end as state,
        count(*)::int4 as count
      from submissions left join submissions as batch on batch.id = submissions.batch_id
      where ${IS_OPEN} and submissions.kind <> ${BATCH} group by 1`.execute(this.#db);
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  /** Those of the given submissions that have an outcome. */
  ended(ids: readonly string[]): Promise<SubmissionRow[]> {
    return this.#db
      .selectFrom("submissions")
      .selectAll()
      .where(sql<boolean>`id = any(${[...ids]}::text[])`)
      .where(sql<boolean>`not ${IS_OPEN}`)
      .execute();
  }

  async byIdempotencyKey(key: string): Promise<SubmissionRow | undefined> {
    return this.#db.selectFrom("submissions").selectAll().where("idempotency_key", "=", key).executeTakeFirst();
  }

  async #notifyCredits(trx: Trx, rows: readonly SubmissionRow[]): Promise<void> {
    const outcomes = rows.flatMap(({ id, account_id, kind, charged, billed }): SubmissionOutcome[] =>
      billed && account_id !== null
        ? [{ submissionId: id as SubmissionId, accountId: account_id as AccountId, kind, charged }]
        : [],
    );
    if (outcomes.length > 0) await this.#hooks.onOutcome(outcomes, trx);
  }
}
