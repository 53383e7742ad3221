/**
 * Submissions in the store. Every state change is one statement or transaction conditional on the state it starts from,
 * so that two relayers, even one presumed dead, can never both make it.
 */
import { randomBytes } from "node:crypto";
import { sql, type Selectable } from "kysely";
import type { AccountId, Address, Hash32 } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import { leaseExpired } from "../../store/instance";
import type { KeptFailure, SubmissionAttemptsTable, SubmissionsTable } from "../../store/tables/chain";
import { cancelSubmission } from "./operations";
import { sameResult } from "../abi/receipts";
import { hasOutcome, IS_OPEN } from "./states";
import type {
  SubmissionFailure,
  SubmissionHooks,
  SubmissionId,
  SubmissionOutcome,
  SubmissionView,
  WriteResult,
} from "../types";

export type SubmissionRow = Selectable<SubmissionsTable>;
export type AttemptRow = Selectable<SubmissionAttemptsTable>;

export const newSubmissionId = (): SubmissionId => randomBytes(16).toString("hex") as SubmissionId;
export const parseSubmissionId = (text: string): SubmissionId | undefined =>
  /^[0-9a-f]{32}$/.test(text) ? (text as SubmissionId) : undefined;

export interface Beginning {
  readonly id: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  readonly payer: number;
  /** The turn at which the write was simulated. */
  readonly turn: number;
  readonly calldata: string;
  /** Null for a forward request, which is authorized by its signature. */
  readonly tag: string | null;
  /** Of a forward request: its signer, and the turn at which its nonce was read. */
  readonly signer?: { readonly address: Address; readonly turn: number };
  readonly gasLimit: bigint;
  readonly idempotencyKey: string | undefined;
  readonly billed: boolean;
  readonly requestId: string | undefined;
}

/** Writes, or forward requests, that share a transaction. */
export interface BatchBeginning {
  readonly payer: number;
  readonly gasLimit: bigint;
  readonly writes: readonly Omit<Beginning, "payer" | "gasLimit">[];
}

/** The row that holds a nonce, and the batch members it carries; none for single submissions, fillers and top-ups. */
export interface Unit {
  readonly row: SubmissionRow;
  readonly members: readonly SubmissionRow[];
}

export interface Outcome {
  readonly state: "mined" | "failed" | "expired";
  readonly transactionHash?: string;
  readonly block?: { readonly number: number; readonly hash: string };
  readonly result?: WriteResult;
  readonly error?: SubmissionFailure;
  /** It was mined, successfully or not. */
  readonly charged: boolean;
}

/** Another instance watches the submission now; this one must not continue. */
export class LostSubmission extends Error {
  override readonly name = "LostSubmission";
}

/** Another write has used the idempotency key. */
export class RepeatedKey extends Error {
  override readonly name = "RepeatedKey";
}

const AT_A_TIME = 200;
/** The `kind` of a batch's row. */
export const BATCH = "batch";

export class SubmissionRecords {
  constructor(
    private readonly db: Db,
    private readonly instanceId: string,
    private readonly hooks: SubmissionHooks,
  ) {}

  /**
   * Takes the lane's next nonce and stores the submission, in one transaction. Undefined when another write of the
   * account came first or the lane is draining: simulate again. Throws RepeatedKey.
   */
  async begin(beginning: Beginning): Promise<SubmissionRow | undefined> {
    try {
      if (!beginning.billed) return await this.#takeNonce(this.db, beginning);
      return await this.db.transaction().execute(async (trx) => {
        const row = await this.#takeNonce(trx, beginning);
        if (row !== undefined) await this.hooks.onBegin([beginning.id], trx);
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
  async beginBatch(beginning: BatchBeginning): Promise<Unit | undefined> {
    const billed = new Set(beginning.writes.filter((write) => write.billed).map(({ id }) => id));
    if (billed.size === 0) return this.#takeBatchNonce(this.db, beginning);
    return this.db.transaction().execute(async (trx) => {
      const unit = await this.#takeBatchNonce(trx, beginning);
      const bound = unit?.members.map(({ id }) => id as SubmissionId).filter((id) => billed.has(id)) ?? [];
      if (bound.length > 0) await this.hooks.onBegin(bound, trx);
      return unit;
    });
  }

  async #takeBatchNonce(trx: Db | Trx, { payer, gasLimit, writes }: BatchBeginning): Promise<Unit | undefined> {
    const id = newSubmissionId();
    const wanted = writes.map(({ idempotencyKey = null, requestId = null, signer, ...write }, place) => ({
      ...write,
      idempotencyKey,
      requestId,
      signer: signer?.address ?? null,
      signersTurn: signer?.turn ?? null,
      place,
    }));
    const { rows } = await sql<SubmissionRow>`
      with wanted as (
        select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as w (id text, "accountId" text, kind text, turn int8, calldata text, tag text,
          "idempotencyKey" text, billed boolean, "requestId" text, signer text, "signersTurn" int8, place int4)
      ), keys as (
        select "accountId" as key, turn from wanted where not exists (select from submissions where idempotency_key = wanted."idempotencyKey")
        union all select signer, "signersTurn" from wanted where signer is not null
      ), turn as (
        update account_turns set turn = account_turns.turn + 1, payer = ${payer} from keys
        where account_id = keys.key and account_turns.turn = keys.turn
          and not exists (select from submissions where account_id = keys.key and ${IS_OPEN})
          and not exists (select from submissions where signer = keys.key and ${IS_OPEN})
        returning account_id
      ), ready as (
        select wanted.* from wanted
        where "accountId" in (select account_id from turn) and (signer is null or signer in (select account_id from turn))
      ), lane as (
        update lanes set next_nonce = next_nonce + 1
        where payer = ${payer} and not draining and exists (select from ready)
        returning next_nonce - 1 as nonce
      ), batch as (
        insert into submissions (id, kind, state, payer, nonce, gas_limit, instance_id)
        select ${id}, 'batch', 'reserved', ${payer}::int4, nonce, ${gasLimit.toString()}::int8, ${this.instanceId} from lane returning *
      ), members as (
        insert into submissions (id, account_id, kind, state, payer, batch_id, place, calldata, tag, idempotency_key, billed, request_id, signer)
        select ready.id, "accountId", kind, 'reserved', ${payer}::int4, ${id}, place, calldata, tag, "idempotencyKey", billed, "requestId", signer
        from ready cross join lane
        returning *
      )
      select * from batch union all select * from members`.execute(trx);
    const [row] = rows.filter(({ kind }) => kind === BATCH);
    return row === undefined
      ? undefined
      : { row, members: rows.filter(({ batch_id }) => batch_id === id).sort(byPlace) };
  }

  async #takeNonce(trx: Db | Trx, beginning: Beginning): Promise<SubmissionRow | undefined> {
    const {
      id,
      accountId,
      kind,
      payer,
      turn,
      calldata,
      tag,
      gasLimit,
      idempotencyKey = null,
      billed,
      requestId = null,
      signer,
    } = beginning;
    const keys = [
      { key: accountId, turn },
      ...(signer === undefined ? [] : [{ key: signer.address, turn: signer.turn }]),
    ];
    const { rows } = await sql<SubmissionRow>`
      with keys as (
        select * from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as k (key text, turn int8)
      ), turn as (
        update account_turns set turn = account_turns.turn + 1, payer = ${payer} from keys
        where account_id = keys.key and account_turns.turn = keys.turn
          and not exists (select from submissions where account_id = keys.key and ${IS_OPEN})
          and not exists (select from submissions where signer = keys.key and ${IS_OPEN})
        returning 1
      ), lane as (
        update lanes set next_nonce = next_nonce + 1
        where payer = ${payer} and not draining and (select count(*) from turn) = ${keys.length}::int4
        returning next_nonce - 1 as nonce
      )
      insert into submissions (id, account_id, kind, state, payer, nonce, calldata, tag, gas_limit, idempotency_key, billed, instance_id, request_id, signer)
      select ${id}, ${accountId}, ${kind}, 'reserved', ${payer}::int4, nonce, ${calldata}, ${tag}, ${gasLimit.toString()}::int8, ${idempotencyKey}, ${billed}::boolean,
        ${this.instanceId}, ${requestId}, ${signer?.address ?? null}
      from lane returning *`.execute(trx);
    return rows[0];
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
      select ${newSubmissionId()}, 'top_up', 'reserved', 0, nonce, ${toPayer}::int4, ${amountWei.toString()}::numeric, 21000, ${this.instanceId}
      from lane returning *`.execute(this.db);
    return rows[0];
  }

  /** Stores signed bytes before they are sent. Throws LostSubmission. */
  async addAttempt(row: SubmissionRow, attempt: Omit<AttemptRow, "created_at" | "submission_id">): Promise<AttemptRow> {
    const { rows } = await sql<AttemptRow>`
      with held as (
        update submissions set state = case when state = 'reserved' then 'signed' else state end, updated_at = now()
        where id = ${row.id} and instance_id = ${this.instanceId} and ${IS_OPEN}
        returning id
      ), members as (
        update submissions set state = 'signed' from held where batch_id = held.id and state = 'reserved'
      )
      insert into submission_attempts (hash, submission_id, does, raw, max_fee, priority_fee)
      select ${attempt.hash}, id, ${attempt.does}, ${attempt.raw}, ${attempt.max_fee}::numeric, ${attempt.priority_fee}::numeric from held
      on conflict (hash) do update set raw = excluded.raw
      returning *`.execute(this.db);
    if (rows[0] === undefined) throw new LostSubmission();
    return rows[0];
  }

  async attempts(id: string): Promise<AttemptRow[]> {
    return this.db
      .selectFrom("submission_attempts")
      .selectAll()
      .where("submission_id", "=", id)
      .orderBy("created_at")
      .execute();
  }

  /** A node accepted or already knows the transaction. */
  async markSent(id: string): Promise<void> {
    await sql`update submissions set state = 'sent', updated_at = now() where (id = ${id} or batch_id = ${id}) and state = 'signed'`.execute(
      this.db,
    );
  }

  /** The members of a batch, in order. */
  async members(batchId: string): Promise<SubmissionRow[]> {
    return this.db.selectFrom("submissions").selectAll().where("batch_id", "=", batchId).orderBy("place").execute();
  }

  cancel(id: string): Promise<boolean> {
    return cancelSubmission(this.db, id);
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
      ? await this.db.transaction().execute(async (trx) => {
          const written = await this.#writeOutcomes(trx, all, outcomes);
          await this.#tellBooks(
            trx,
            written.filter(({ before }) => before === null),
          );
          return written;
        })
      : await this.#writeOutcomes(this.db, all, outcomes);
    const byId = new Map(ended.map((now) => [now.id, now]));
    const own = byId.get(row.id);
    if (own === undefined) return this.#overtaken(row, outcomes);
    return { row: own, members: members.map((member) => byId.get(member.id) ?? member) };
  }

  async #writeOutcomes(
    trx: Db | Trx,
    rows: readonly SubmissionRow[],
    outcomes: ReadonlyMap<string, Outcome>,
  ): Promise<SubmissionRow[]> {
    const ends = rows.flatMap((row) => {
      const outcome = outcomes.get(row.id);
      return outcome === undefined ? [] : [endOf(row, outcome)];
    });
    const { rows: ended } = await sql<SubmissionRow>`
      with ends as (
        select * from jsonb_to_recordset(${JSON.stringify(ends)}::jsonb) as e (id text, state text, hash text, block int8, "blockHash" text, result jsonb,
          error jsonb, charged boolean, "isFirst" boolean)
      ), ended as (
        update submissions set state = ends.state, transaction_hash = ends.hash, block_number = ends.block, block_hash = ends."blockHash", result = ends.result,
          error = ends.error, charged = submissions.charged or ends.charged, instance_id = null, updated_at = now()
        from ends
        where submissions.id = ends.id and ${IS_OPEN} and (submissions.before is null) = ends."isFirst"
        returning submissions.*
      ), seen as (
        update account_turns set last_block = greatest(last_block, ended.block_number) from ended
        where account_turns.account_id = ended.account_id and ended.block_number is not null
      )
      select * from ended`.execute(trx);
    return ended;
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
    return this.db.transaction().execute(async (trx) => {
      const { numUpdatedRows: given } = await trx
        .updateTable("lanes")
        .set({ next_nonce: sql`next_nonce - 1` })
        .where("payer", "=", row.payer)
        .where(sql<boolean>`next_nonce = ${row.nonce} + 1`)
        .executeTakeFirst();
      const { rows: failed } = await sql<SubmissionRow>`
        with given_up as (
          update submissions set state = 'failed', nonce = null, error = ${JSON.stringify(error)}::jsonb, instance_id = null, updated_at = now()
          where id = ${row.id} and state = 'reserved' and instance_id = ${this.instanceId} returning *
        ), members as (
          update submissions set state = 'failed', error = given_up.error, updated_at = now()
          from given_up where submissions.batch_id = given_up.id returning submissions.*
        )
        select * from given_up union all select * from members`.execute(trx);
      const own = failed.find(({ id }) => id === row.id);
      if (own === undefined) throw new LostSubmission();
      await this.#tellBooks(trx, failed);
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
        instance_id: this.instanceId,
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
    const orphans = this.db
      .selectFrom("submissions")
      .select("id")
      .where(IS_OPEN)
      .where("batch_id", "is", null)
      .where((eb) =>
        eb.or([
          eb("instance_id", "is", null),
          leaseExpired("submissions.instance_id"),
          sql<boolean>`(instance_id = ${this.instanceId} and not id = any(${[...watchedIds]}::text[]))`,
        ]),
      )
      .orderBy("payer")
      .orderBy("nonce")
      .limit(AT_A_TIME)
      .forUpdate()
      .skipLocked();
    return this.db
      .updateTable("submissions")
      .set({ instance_id: this.instanceId })
      .where("id", "in", orphans)
      .returningAll()
      .execute();
  }

  /** Releases submissions, so that any instance may take them over at once. */
  async handBack(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.db
      .updateTable("submissions")
      .set({ instance_id: null })
      .where("id", "in", [...ids])
      .where("instance_id", "=", this.instanceId)
      .execute();
  }

  async payerAddress(payer: number): Promise<string> {
    const lane = await this.db
      .selectFrom("lanes")
      .select("address")
      .where("payer", "=", payer)
      .executeTakeFirstOrThrow();
    return lane.address;
  }

  async load(id: string): Promise<SubmissionRow | undefined> {
    return this.db.selectFrom("submissions").selectAll().where("id", "=", id).executeTakeFirst();
  }

  /** Those of the given submissions that have an outcome. */
  ended(ids: readonly string[]): Promise<SubmissionRow[]> {
    return this.db
      .selectFrom("submissions")
      .selectAll()
      .where(sql<boolean>`id = any(${[...ids]}::text[])`)
      .where(sql<boolean>`not ${IS_OPEN}`)
      .execute();
  }

  async byIdempotencyKey(key: string): Promise<SubmissionRow | undefined> {
    return this.db.selectFrom("submissions").selectAll().where("idempotency_key", "=", key).executeTakeFirst();
  }

  async #tellBooks(trx: Trx, rows: readonly SubmissionRow[]): Promise<void> {
    const outcomes = rows.flatMap(({ id, account_id, kind, charged, billed }): SubmissionOutcome[] =>
      billed && account_id !== null
        ? [{ submissionId: id as SubmissionId, accountId: account_id as AccountId, kind, charged }]
        : [],
    );
    if (outcomes.length > 0) await this.hooks.onOutcome(outcomes, trx);
  }
}

const byPlace = (a: SubmissionRow, b: SubmissionRow): number => (a.place ?? 0) - (b.place ?? 0);

/** The values a row gets, for the one statement that writes a whole unit. */
function endOf(row: SubmissionRow, { state, transactionHash, block, result, error, charged }: Outcome): object {
  return {
    id: row.id,
    state: row.before === null || isSameAnswer(row.before, { result, error }) ? state : "changed",
    hash: transactionHash ?? null,
    block: block?.number ?? null,
    blockHash: block?.hash ?? null,
    result: result ?? null,
    error: error ?? null,
    charged,
    isFirst: row.before === null,
  };
}

type Answered = NonNullable<SubmissionRow["before"]>;

function isSameAnswer(
  before: Answered,
  now: { result?: WriteResult | undefined; error?: SubmissionFailure | undefined },
): boolean {
  return before.error?.code === now.error?.code && sameResult(before.result as WriteResult | undefined, now.result);
}

export function viewOf(row: SubmissionRow): SubmissionView {
  return {
    id: row.id as SubmissionId,
    accountId: row.account_id as AccountId,
    kind: row.kind,
    state: row.state,
    ...(row.transaction_hash === null ? {} : { transactionHash: row.transaction_hash as Hash32 }),
    ...(row.block_number === null ? {} : { blockNumber: row.block_number }),
    ...(row.result === null ? {} : { result: row.result as WriteResult }),
    ...(row.error === null ? {} : { error: failureOfKept(row.error) }),
    ...(row.before === null ? {} : { before: beforeOf(row.before) }),
    charged: row.charged,
    createdAt: row.created_at,
  };
}

function beforeOf({ result, error }: Answered): NonNullable<SubmissionView["before"]> {
  return {
    ...(result === undefined ? {} : { result: result as WriteResult }),
    ...(error === undefined ? {} : { error: failureOfKept(error) }),
  };
}

const failureOfKept = (kept: KeptFailure): SubmissionFailure => ({
  code: kept.code as SubmissionFailure["code"],
  detail: kept.detail,
  facts: kept.facts,
});
