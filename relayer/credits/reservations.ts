/** Reservations belong to acts: a write's to its submission, a run's to the run. Source: design "Credits". */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import type { Prices } from "../../protocol/limits";
import type { Db, Trx } from "../store/database";
import { leaseExpired } from "../store/instance";
import { close, closeWrites, hold, shortage, type Closing, type Hold } from "./holds";
import type { WriteEnd, RunRecord, RunRequest, RunReservation, WriteReservation } from "./types";

export interface ReservationsOptions {
  readonly db: Db;
  readonly instanceId: string;
  readonly prices: Prices;
  /** Told when the end of a run could not be written down; it is tried again until it can. */
  readonly onError: (error: unknown) => void;
}

const ORPHANS_PER_SWEEP = 200;

export class Reservations {
  /**
   * What acts of this process hold or are about to hold, in cents. Whatever else this instance holds for no submission is a reservation whose answer was
   * lost: nobody will ever close it, so the sweep gives it back.
   */
  readonly #inUse = new Map<string, number>();
  /** Ends of runs that are still to be written down. */
  readonly #unwritten = new Map<string, Closing>();

  constructor(private readonly options: ReservationsOptions) {}

  async reserveWrite(reservation: WriteReservation): Promise<void> {
    const { submissionId, cents, evenWithoutCredit = false, ...spender } = reservation;
    if (cents === 0) return;
    const wanted: Hold = {
      ...spender,
      id: submissionId,
      kind: "write",
      instanceId: this.options.instanceId,
      leastCents: cents,
      mostCents: cents,
      stepCents: cents,
    };
    const held = await this.#hold(wanted);
    if (held === undefined && !evenWithoutCredit) throw await shortage(this.options.db, wanted);
  }

  /** In use before the statement that holds it is sent, so that no sweep can take it for lost. */
  async #hold(wanted: Hold): Promise<number | undefined> {
    this.#inUse.set(wanted.id, 0);
    let held: number | undefined;
    try {
      held = await hold(this.options.db, wanted);
    } finally {
      if (held === undefined) this.#inUse.delete(wanted.id);
      else this.#inUse.set(wanted.id, held);
    }
    return held;
  }

  async bindWrites(submissionIds: readonly string[], trx: Trx): Promise<void> {
    const ids = [...submissionIds];
    const bound = await trx
      .updateTable("credit_reservations")
      .set({ bound: true })
      .where(sql<boolean>`id = any(${ids}::text[])`)
      .where("state", "=", "held")
      .returning("id")
      .execute();
    if (bound.length === ids.length) return;
    const given = await trx
      .selectFrom("credit_reservations")
      .select("id")
      .where(sql<boolean>`id = any(${ids}::text[])`)
      .execute();
    if (given.length > bound.length) {
      throw new KeywrightError(
        "database_unavailable",
        "The credit held for this write was given back because it took too long. Nothing was sent or charged; try again.",
      );
    }
  }

  /** If it was written down nevertheless (only the answer was lost) it keeps its reservation: its outcome settles it. */
  async abandonWrite(submissionId: string): Promise<void> {
    this.#inUse.delete(submissionId);
    try {
      await close(this.options.db, { id: submissionId, state: "released", costCents: 0, only: "unbound" });
    } catch (error) {
      // The sweep finds it.
      this.options.onError(error);
    }
  }

  async settleWrite(submissionId: string, trx: Trx): Promise<number> {
    return this.#endWrite(submissionId, "settled", trx);
  }

  async releaseWrite(submissionId: string, db: Db): Promise<void> {
    await this.#endWrite(submissionId, "released", db);
  }

  /** Settles those that cost something and releases the others, all in one statement. */
  async endWrites(ends: readonly WriteEnd[], trx: Trx): Promise<void> {
    for (const { submissionId } of ends) this.#inUse.delete(submissionId);
    const [only] = ends;
    if (ends.length > 1) await closeWrites(trx, ends);
    else if (only !== undefined) await this.#endWrite(only.submissionId, only.charged ? "settled" : "released", trx);
  }

  async #endWrite(id: string, state: Closing["state"], db: Db): Promise<number> {
    this.#inUse.delete(id);
    const cost = await close(db, { id, state, costCents: state === "settled" ? Number.MAX_SAFE_INTEGER : 0 });
    return cost ?? (await this.#costOf(id, db));
  }

  async reserveRun(request: RunRequest): Promise<RunReservation> {
    const { limitMs, runId, ...spender } = request;
    const price = this.options.prices.runSecondCents;
    const reservationId = runId ?? randomUUID();
    if (price === 0 && runId === undefined) return { reservationId, limitMs };
    const wanted: Hold = {
      ...spender,
      id: reservationId,
      kind: "run",
      instanceId: this.options.instanceId,
      leastCents: price,
      mostCents: startedSeconds(limitMs) * price,
      stepCents: price,
    };
    const held = await this.#hold(wanted).catch((error: unknown) => {
      throw isTaken(error) ? runIsTaken() : error;
    });
    if (held === undefined) throw await shortage(this.options.db, wanted);
    return { reservationId, limitMs: price === 0 ? limitMs : Math.min(limitMs, (held / price) * 1000) };
  }

  async settleRun(reservationId: string, durationMs: number, record?: RunRecord): Promise<number> {
    const costCents = startedSeconds(durationMs) * this.options.prices.runSecondCents;
    return this.#endRun({ id: reservationId, state: "settled", costCents, record });
  }

  async releaseRun(reservationId: string, record?: RunRecord): Promise<void> {
    await this.#endRun({ id: reservationId, state: "released", costCents: 0, record });
  }

  /** The run is over and its answer must not be lost to a database that is away: then its end is written down later. */
  async #endRun(closing: Closing): Promise<number> {
    const held = this.#inUse.get(closing.id);
    try {
      const cost = await close(this.options.db, closing);
      this.#inUse.delete(closing.id);
      return cost ?? (await this.#costOf(closing.id, this.options.db));
    } catch (error) {
      this.options.onError(error);
      this.#unwritten.set(closing.id, closing);
      return Math.min(held ?? 0, closing.costCents);
    }
  }

  async #costOf(id: string, db: Db): Promise<number> {
    const row = await db.selectFrom("credit_reservations").select("cost_cents").where("id", "=", id).executeTakeFirst();
    return row?.cost_cents ?? 0;
  }

  /** Writes down what could not be written before, and gives back what no living instance answers for. Returns how many orphans there were. */
  async sweep(): Promise<number> {
    for (const closing of [...this.#unwritten.values()]) {
      await close(this.options.db, closing);
      this.#unwritten.delete(closing.id);
      this.#inUse.delete(closing.id);
    }
    return (await this.#releaseLost()) + (await this.#releaseOrphans());
  }

  /** Held by this instance for no act of it. */
  async #releaseLost(): Promise<number> {
    const { db, instanceId } = this.options;
    const mine = await db.selectFrom("credit_reservations").select("id").where(HELD).where("bound", "=", false).where("instance_id", "=", instanceId).execute();
    const lost = mine.filter(({ id }) => !this.#inUse.has(id)).slice(0, ORPHANS_PER_SWEEP);
    return this.#release(lost, "unbound");
  }

  /** A run whose relayer died is free, and so is a write that never became a submission. A submission's reservation waits for its outcome. */
  async #releaseOrphans(): Promise<number> {
    const orphans = await this.options.db
      .selectFrom("credit_reservations")
      .select("id")
      .where(HELD)
      .where("bound", "=", false)
      .where(leaseExpired("instance_id"))
      .limit(ORPHANS_PER_SWEEP)
      .execute();
    return this.#release(orphans, "orphaned");
  }

  async #release(reservations: readonly { readonly id: string }[], only: "unbound" | "orphaned"): Promise<number> {
    const closings = reservations.map(({ id }) => close(this.options.db, { id, state: "released", costCents: 0, only }));
    return (await Promise.all(closings)).filter((cost) => cost !== undefined).length;
  }
}

/** As a literal: only so can the database use the index of held reservations in a prepared statement. */
const HELD = sql<boolean>`state = 'held'`;

const isTaken = (error: unknown): boolean => (error as { constraint?: unknown } | undefined)?.constraint === "credit_reservations_pkey";

const runIsTaken = (): KeywrightError =>
  new KeywrightError("idempotency_in_progress", "A request with this Idempotency-Key is still running.", {}, { retryAfterSeconds: 1 });

/** A second that has begun counts whole; a run that was started has begun its first. */
function startedSeconds(durationMs: number): number {
  return Math.max(1, Math.ceil(durationMs / 1000));
}
