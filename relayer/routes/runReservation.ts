/**
 * Credit for a run, reserved while the executor decides, if the same run was permitted the last time: then the run
 * hardly waits for the reservation. The reservation is speculative: if the decision names another spender or cap, it is
 * released.
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { Credits, RunReservation, Spender } from "../credits/types";
import type { Caller } from "../middleware/call";

export interface RunText {
  readonly code: string | undefined;
  readonly cid: string | undefined;
  readonly pkp: string | undefined;
}

/** Runs that were permitted, identified by key, code and PKP. */
export class PermittedRuns {
  readonly #known = new LRUCache<string, true>({ max: 10_000 });

  /** Undefined where hashing the code would cost more than it could save. */
  nameOf(
    actorId: string,
    body: { code?: string | undefined; cid?: string | undefined; pkp: unknown },
  ): string | undefined {
    if ((body.code?.length ?? 0) > MOST_CODE_CHARS) return undefined;
    return createHash("sha256")
      .update(JSON.stringify([actorId, body]))
      .digest("base64");
  }

  has(name: string | undefined): boolean {
    return name !== undefined && this.#known.has(name);
  }

  note(name: string | undefined, isPermitted: boolean): void {
    if (name === undefined) return;
    if (isPermitted) this.#known.set(name, true);
    else this.#known.delete(name);
  }
}

const MOST_CODE_CHARS = 64 * 1024;

export class EarlyReservation {
  /** Taken or released. */
  #isOver = false;

  private constructor(
    private readonly credits: Credits,
    private readonly spender: Spender,
    private readonly reservation: Promise<RunReservation>,
  ) {
    // No unhandled rejection: the error reaches the caller that takes the reservation.
    reservation.catch(() => undefined);
  }

  static begin(credits: Credits, caller: Caller, limitMs: number): EarlyReservation {
    const spender = spenderOf(caller);
    return new EarlyReservation(credits, spender, credits.reserveRun({ ...spender, limitMs }));
  }

  /**
   * The reservation, if it was made for this caller and its current cap. @throws KeywrightError as
   * `Credits.reserveRun`.
   */
  takeFor(caller: Caller): Promise<RunReservation> | undefined {
    if (!isDeepStrictEqual(spenderOf(caller), this.spender)) return undefined;
    this.#isOver = true;
    return this.reservation;
  }

  /** Releases the reservation unless it was taken. */
  async end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const held = await this.reservation.catch(() => undefined);
    if (held !== undefined) await this.credits.releaseRun(held.reservationId);
  }
}

export const spenderOf = ({ accountId, keyId, capCents }: Caller): Spender => ({ accountId, keyId, capCents });
