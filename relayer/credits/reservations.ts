/** Reservations belong to acts: a write's to its submission, a run's to the run. Source: design "Credits". */
import { randomUUID } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import type { Prices } from "../../protocol/limits";
import type { Db, Trx } from "../store/database";
import { leaseExpired } from "../store/instance";
import { close, hold, shortage, type Closing, type Hold } from "./holds";
import type { RunRecord, RunRequest, RunReservation, WriteReservation } from "./types";

export interface ReservationsOptions {
  readonly db: Db;
  readonly instanceId: string;
  readonly prices: Prices;
  /** Told when the end of a run could not be written down; it is tried again until it can. */
  readonly onError: (error: unknown) => void;
}

const ORPHANS_PER_SWEEP = 200;

export class Reservations {
  /** Cents held by runs of this process: what an answer may claim as cost while the database is away. */
  readonly #openRuns = new Map<string, number>();
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
    const held = await hold(this.options.db, wanted);
    if (held === undefined && !evenWithoutCredit) throw await shortage(this.options.db, wanted);
  }

  async bindWrite(submissionId: string, trx: Trx): Promise<void> {
    const bound = await trx
      .updateTable("credit_reservations")
      .set({ bound: true })
      .where("id", "=", submissionId)
      .where("state", "=", "held")
      .returning("id")
      .executeTakeFirst();
    if (bound !== undefined) return;
    const given = await trx.selectFrom("credit_reservations").select("id").where("id", "=", submissionId).executeTakeFirst();
    if (given !== undefined) {
      throw new KeywrightError(
        "database_unavailable",
        "The credit held for this write was given back because it took too long. Nothing was sent or charged; try again.",
      );
    }
  }

  async settleWrite(submissionId: string, trx: Trx): Promise<number> {
    return this.#endWrite(submissionId, "settled", trx);
  }

  async releaseWrite(submissionId: string, db: Db): Promise<void> {
    await this.#endWrite(submissionId, "released", db);
  }

  async #endWrite(id: string, state: Closing["state"], db: Db): Promise<number> {
    const cost = await close(db, { id, state, costCents: state === "settled" ? Number.MAX_SAFE_INTEGER : 0 });
    return cost ?? (await this.#costOf(id, db));
  }

  async reserveRun(request: RunRequest): Promise<RunReservation> {
    const { limitMs, ...spender } = request;
    const price = this.options.prices.runSecondCents;
    const reservationId = randomUUID();
    if (price === 0) return { reservationId, limitMs };
    const wanted: Hold = {
      ...spender,
      id: reservationId,
      kind: "run",
      instanceId: this.options.instanceId,
      leastCents: price,
      mostCents: startedSeconds(limitMs) * price,
      stepCents: price,
    };
    const held = await hold(this.options.db, wanted);
    if (held === undefined) throw await shortage(this.options.db, wanted);
    this.#openRuns.set(reservationId, held);
    return { reservationId, limitMs: Math.min(limitMs, (held / price) * 1000) };
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
    const held = this.#openRuns.get(closing.id);
    try {
      const cost = await close(this.options.db, closing);
      this.#openRuns.delete(closing.id);
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
      this.#openRuns.delete(closing.id);
    }
    return this.#releaseOrphans();
  }

  /** A run whose relayer died is free, and so is a write that never became a submission. A submission's reservation waits for its outcome. */
  async #releaseOrphans(): Promise<number> {
    const orphans = await this.options.db
      .selectFrom("credit_reservations")
      .select("id")
      .where("state", "=", "held")
      .where("bound", "=", false)
      .where(leaseExpired("instance_id"))
      .limit(ORPHANS_PER_SWEEP)
      .execute();
    const released = await Promise.all(orphans.map(({ id }) => close(this.options.db, { id, state: "released", costCents: 0, onlyOrphan: true })));
    return released.filter((cost) => cost !== undefined).length;
  }
}

/** A second that has begun counts whole; a run that was started has begun its first. */
function startedSeconds(durationMs: number): number {
  return Math.max(1, Math.ceil(durationMs / 1000));
}
