/** Reservations belong to operations: a write's to its submission, a run's to the run. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import { startedSeconds, type Prices } from "../../protocol/limits";
import type { Db, Trx } from "../store/database";
import { leaseExpired } from "../store/instance";
import type { CreditAccounts } from "./creditAccounts";
import { close, endWrites, hold, NO_ROW, settleLate, shortage, type Closing, type Hold } from "./holds";
import { WriteHolds } from "./writeHolds";
import type { WriteEnd, RunRecord, RunRequest, RunReservation, WriteReservation } from "./types";

export interface ReservationsOptions {
  readonly db: Db;
  readonly instanceId: string;
  readonly prices: Prices;
  readonly accounts: Pick<CreditAccounts, "ensureSpender" | "ensureSpenderAgain">;
  /** Called when the end of a run could not be stored; storing it is retried until it succeeds. */
  readonly onError: (error: unknown) => void;
}

const ORPHANS_PER_SWEEP = 200;
const BETWEEN_TRIES_MS = 200;

export class Reservations {
  /**
   * Cents held, or about to be held, by operations of this process. Any other unbound reservation of this instance is
   * one whose response was lost: nothing else closes it, so the sweep releases it.
   */
  readonly #inUse = new Map<string, number>();
  /** Ends of runs not yet stored. */
  readonly #unwritten = new Map<string, Closing>();
  #isStopping = false;

  readonly #writeHolds: WriteHolds;
  readonly #options: ReservationsOptions;

  constructor(options: ReservationsOptions) {
    this.#options = options;
    this.#writeHolds = new WriteHolds(options.db, (hold) => options.accounts.ensureSpenderAgain(hold));
  }

  /**
   * Holds a write's price for its submission; false when it holds nothing, and the write is free. Errors:
   * `insufficient_credit` {required_cents, balance_cents}, `key_cap_spent` {required_cents, cap_cents, spent_cents}.
   * Released automatically if the submission is never stored (`bindWrites`) and this instance dies.
   */
  async reserveWrite(reservation: WriteReservation): Promise<boolean> {
    await this.#options.accounts.ensureSpender(reservation);
    const { submissionId, cents, evenWithoutCredit = false, ...spender } = reservation;
    if (cents === 0) return false;
    const wanted = { ...spender, id: submissionId, instanceId: this.#options.instanceId, cents };
    const held = await this.#track(submissionId, async () =>
      (await this.#writeHolds.hold(wanted)) ? cents : undefined,
    );
    if (held === undefined && !evenWithoutCredit)
      throw await shortage(this.#options.db, { ...wanted, kind: "write", leastCents: cents });
    return held !== undefined;
  }

  async #hold(wanted: Hold): Promise<number | undefined> {
    const { accounts, db } = this.#options;
    let held = await hold(db, wanted);
    if (held === NO_ROW) {
      await accounts.ensureSpenderAgain(wanted);
      held = await hold(db, wanted);
    }
    return held === NO_ROW ? undefined : held;
  }

  /** Registered before the holding statement is sent, so that no sweep takes the reservation for lost. */
  async #track(id: string, hold: () => Promise<number | undefined>): Promise<number | undefined> {
    this.#inUse.set(id, 0);
    let held: number | undefined;
    try {
      held = await hold();
    } finally {
      if (held === undefined) this.#inUse.delete(id);
      else this.#inUse.set(id, held);
    }
    return held;
  }

  /**
   * Call in the transaction that stores the submissions: from then on only their outcomes settle or release the
   * reservations. Throws `database_unavailable` (retryable, nothing sent) when a reservation was released meanwhile.
   * Submissions without a reservation are ignored.
   */
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
        "The credit held for this write was given back because it took too long. Nothing was sent or " +
          "charged; try again.",
      );
    }
  }

  /**
   * For a write that failed between `reserveWrite` and its submission. If the submission was stored after all (only the
   * response was lost), it keeps its reservation: its outcome settles it. Never rejects.
   */
  async abandonWrite(submissionId: string): Promise<void> {
    this.#inUse.delete(submissionId);
    try {
      await close(this.#options.db, { id: submissionId, state: "released", costCents: 0, only: "unbound" });
    } catch (error) {
      // The sweep releases it.
      this.#options.onError(error);
    }
  }

  /**
   * Settles the writes that were mined (also reverted ones: their gas was paid), and releases the others. Call in the
   * transaction that stores their outcomes; idempotent.
   */
  async endWrites(ends: readonly WriteEnd[], trx: Trx): Promise<void> {
    for (const { submissionId } of ends) this.#inUse.delete(submissionId);
    await endWrites(trx, ends);
  }

  /**
   * Holds min(limit × price, free balance, rest of the key's cap and of its day), at least one second's price. Errors:
   * `insufficient_credit` {required_cents, balance_cents}, `key_cap_spent` {required_cents, cap_cents, spent_cents},
   * `key_day_spent`, `rate_limited` and `origin_not_allowed` by the key's limits,
   * `idempotency_in_progress` when a run with this id was reserved before.
   */
  async reserveRun(request: RunRequest): Promise<RunReservation> {
    await this.#options.accounts.ensureSpender(request);
    const { limitMs, runId, ...spender } = request;
    const price = this.#options.prices.runSecondCents;
    const reservationId = runId ?? randomUUID();
    if (price === 0 && runId === undefined && request.keyId === undefined) return { reservationId, limitMs };
    const wanted: Hold = {
      ...spender,
      id: reservationId,
      kind: "run",
      instanceId: this.#options.instanceId,
      leastCents: price,
      mostCents: startedSeconds(limitMs) * price,
      stepCents: price,
    };
    const held = await this.#track(reservationId, () => this.#hold(wanted)).catch((error: unknown) => {
      throw isTaken(error) ? runIsTaken() : error;
    });
    if (held === undefined) throw await shortage(this.#options.db, wanted);
    return { reservationId, limitMs: price === 0 ? limitMs : Math.min(limitMs, (held / price) * 1000) };
  }

  /**
   * Charges min(reserved, started seconds × price) and releases the rest; the record is stored in the same transaction.
   * Idempotent: a second call returns the first one's cost and records nothing. Returns the cents charged.
   */
  async settleRun(reservationId: string, durationMs: number, record?: RunRecord): Promise<number> {
    const costCents = startedSeconds(durationMs) * this.#options.prices.runSecondCents;
    return this.#endRun({ id: reservationId, state: "settled", costCents, record });
  }

  /** The guest was never started (then there is no record), or the service was at fault: nothing is charged. */
  async releaseRun(reservationId: string, record?: RunRecord): Promise<void> {
    await this.#endRun({ id: reservationId, state: "released", costCents: 0, record });
  }

  /**
   * A charged run is answered only once its charge is stored: otherwise a crash in between would make it free. While
   * the store is unavailable the response waits. If this process is stopping, or nothing was charged, the end is stored
   * later.
   */
  async #endRun(closing: Closing): Promise<number> {
    const held = this.#inUse.get(closing.id);
    for (;;) {
      try {
        return await this.#writeEnd(closing);
      } catch (error) {
        this.#options.onError(error);
        if (closing.state === "settled" && !this.#isStopping && error instanceof KeywrightError && error.retryable) {
          await sleep(BETWEEN_TRIES_MS);
          continue;
        }
        this.#unwritten.set(closing.id, closing);
        return Math.min(held ?? 0, closing.costCents);
      }
    }
  }

  async #writeEnd(closing: Closing): Promise<number> {
    const { db } = this.#options;
    const cost =
      (await close(db, closing)) ?? (closing.state === "settled" ? await settleLate(db, closing) : undefined);
    this.#inUse.delete(closing.id);
    return cost ?? (await this.#costOf(closing.id, db));
  }

  /** From now on no response waits for the store; pending ends are tried once more. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#writeEnds();
  }

  async #writeEnds(): Promise<void> {
    for (const closing of [...this.#unwritten.values()]) {
      await this.#writeEnd(closing);
      this.#unwritten.delete(closing.id);
    }
  }

  async #costOf(id: string, db: Db): Promise<number> {
    const row = await db.selectFrom("credit_reservations").select("cost_cents").where("id", "=", id).executeTakeFirst();
    return row?.cost_cents ?? 0;
  }

  /**
   * Stores pending ends and releases reservations that no live instance is responsible for. Returns how many it
   * released.
   */
  async sweep(): Promise<number> {
    await this.#writeEnds();
    return (await this.#releaseLost()) + (await this.#releaseOrphans());
  }

  /** Reservations of this instance that no operation of this process holds. */
  async #releaseLost(): Promise<number> {
    const { db, instanceId } = this.#options;
    const mine = await db
      .selectFrom("credit_reservations")
      .select("id")
      .where(UNBOUND)
      .where("instance_id", "=", instanceId)
      .where(sql<boolean>`not id = any(${[...this.#inUse.keys()]}::text[])`)
      .limit(ORPHANS_PER_SWEEP)
      .execute();
    // Asked again: one may have been registered since.
    const lost = mine.filter(({ id }) => !this.#inUse.has(id));
    return this.#release(lost, "unbound");
  }

  /**
   * A run whose relayer died is free, as is a write that never became a submission. A submission's reservation waits
   * for its outcome.
   */
  async #releaseOrphans(): Promise<number> {
    const orphans = await this.#options.db
      .selectFrom("credit_reservations")
      .select("id")
      .where(UNBOUND)
      .where(leaseExpired("instance_id"))
      .limit(ORPHANS_PER_SWEEP)
      .execute();
    return this.#release(orphans, "orphaned");
  }

  async #release(reservations: readonly { readonly id: string }[], only: "unbound" | "orphaned"): Promise<number> {
    const closings = reservations.map(({ id }) =>
      close(this.#options.db, { id, state: "released", costCents: 0, only }),
    );
    return (await Promise.all(closings)).filter((cost) => cost !== undefined).length;
  }
}

/** Literals, so that a prepared statement can use the partial index of these reservations. */
const UNBOUND = sql<boolean>`state = 'held' and not bound`;

const isTaken = (error: unknown): boolean =>
  (error as { constraint?: unknown } | undefined)?.constraint === "credit_reservations_pkey";

const runIsTaken = (): KeywrightError =>
  new KeywrightError("idempotency_in_progress", "A request with this Idempotency-Key is still running.", undefined, {
    retryAfterSeconds: 1,
  });
