/**
 * Reserves credit for a run while the executor is still deciding, if the same run was permitted the last time. This
 * hides the reservation's latency, and the executor can start the run without another message. The reservation is
 * speculative: if the decision names another state of the key, it is released.
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { Credits } from "../credits";
import type { RunReservation, Spender } from "../credits/types";
import type { KeyState } from "../../protocol/keyState";
import type { AskedRun } from "../executor/askedRun";
import type { Caller } from "../middleware/call";

export interface RunText {
  readonly code: string | undefined;
  readonly cid: string | undefined;
  readonly pkp: string | undefined;
}

/** Runs that were permitted, identified by key, code and PKP, with the key's state at that time. */
export class PermittedRuns {
  readonly #known = new LRUCache<string, KeyState>({ max: 10_000 });

  /** Undefined for large code, whose hashing would take longer than the reservation it saves. */
  nameOf(
    actorId: string,
    body: { code?: string | undefined; cid?: string | undefined; pkp: unknown },
  ): string | undefined {
    if ((body.code?.length ?? 0) > MOST_CODE_CHARS) return undefined;
    return createHash("sha256")
      .update(JSON.stringify([actorId, body]))
      .digest("base64");
  }

  keyOf(name: string | undefined): KeyState | undefined {
    return name === undefined ? undefined : this.#known.get(name);
  }

  note(name: string | undefined, key: KeyState): void {
    if (name !== undefined) this.#known.set(name, key);
  }

  forget(name: string | undefined): void {
    if (name !== undefined) this.#known.delete(name);
  }
}

const MOST_CODE_CHARS = 64 * 1024;

interface Expected {
  readonly caller: Caller;
  /** The state of the caller's key when its role was checked and the run permitted. */
  readonly key: KeyState;
  readonly limitMs: number;
  readonly origin: string | undefined;
}

export class EarlyReservation {
  /** Taken or released. */
  #isOver = false;
  #prepaidAt: Date | undefined;
  readonly #spender: Spender;
  readonly #reservation: Promise<RunReservation>;
  readonly #credits: Credits;
  readonly #expected: Expected;

  private constructor(credits: Credits, expected: Expected) {
    this.#credits = credits;
    this.#expected = expected;
    this.#spender = spenderOf(expected.caller);
    this.#reservation = credits.reservations.reserveRun({
      ...this.#spender,
      limitMs: expected.limitMs,
      origin: expected.origin,
    });
    // No unhandled rejection: the error reaches the caller that takes the reservation.
    this.#reservation.catch(() => undefined);
  }

  static begin(credits: Credits, expected: Expected): EarlyReservation {
    return new EarlyReservation(credits, expected);
  }

  /**
   * Prepays the run once the credit is held. Only for keys, whose role follows from their state and is checked already;
   * an identity's role is read with each request.
   */
  prepay(asked: AskedRun): void {
    if (this.#expected.caller.key === undefined) return;
    this.#reservation.then(
      ({ limitMs }) => {
        if (this.#isOver) return;
        this.#prepaidAt = new Date();
        asked.prepay(limitMs, this.#expected.key);
      },
      () => undefined,
    );
  }

  /** When the run was paid for, unless its reservation was released. */
  get prepaidAt(): Date | undefined {
    return this.#prepaidAt;
  }

  /**
   * The reservation, if it was made for this caller and its current cap. @throws KeywrightError as
   * `Reservations.reserveRun`.
   */
  takeFor(caller: Caller): Promise<RunReservation> | undefined {
    if (!isDeepStrictEqual(spenderOf(caller), this.#spender)) return undefined;
    this.#isOver = true;
    return this.#reservation;
  }

  /** Releases the reservation unless it was taken. */
  async end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#prepaidAt = undefined;
    const held = await this.#reservation.catch(() => undefined);
    if (held !== undefined) await this.#credits.reservations.releaseRun(held.reservationId);
  }
}

export const spenderOf = ({ accountId, keyId, capCents }: Caller): Spender => ({ accountId, keyId, capCents });
