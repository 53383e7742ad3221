/**
 * Orders the writes of one account. Within this process: first come, first served. Between processes: the account's
 * turn number in the store, incremented by each write, so that a write overtaken by another is simulated again.
 */
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId, Address } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import { IS_OPEN } from "./states";

export interface Turn {
  readonly number: number;
}

/**
 * What writes are serialized by: an account, and an owner signing forward requests, since these carry consecutive
 * nonces.
 */
export type TurnKey = AccountId | Address;

export interface AccountQueueOptions {
  readonly db: Db;
  readonly maxWaitingPerAccount: number;
  readonly maxWaiting: number;
}

export class AccountQueue {
  readonly #tails = new Map<AccountId, { tail: Promise<void>; waiting: number }>();
  #waiting = 0;
  readonly #options: AccountQueueOptions;

  constructor(options: AccountQueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Waits for all earlier writes of the account in this process. The caller ends its turn by calling the returned
   * function.
   * Throws `queue_full`, or the error from `tooLate` at `deadline` (ms since the epoch).
   */
  async enter(accountId: AccountId, deadline: number, tooLate: () => KeywrightError): Promise<() => void> {
    const line = this.#tails.get(accountId) ?? { tail: Promise.resolve(), waiting: 0 };
    if (line.waiting >= this.#options.maxWaitingPerAccount || this.#waiting >= this.#options.maxWaiting)
      throw queueFull();
    const before = line.tail;
    let leave: () => void = () => undefined;
    line.tail = before.then(() => new Promise<void>((resolve) => (leave = resolve)));
    this.#tails.set(accountId, line);
    line.waiting += 1;
    this.#waiting += 1;
    const isMine = await settlesBefore(before, deadline);
    this.#waiting -= 1;
    const done = (): void => {
      line.waiting -= 1;
      if (line.waiting === 0) this.#tails.delete(accountId);
      // Released when the predecessor leaves; `leave` is set by then.
      void before.then(() => leave());
    };
    if (isMine) return done;
    done();
    throw tooLate();
  }

  /** Turns of those accounts and signers that have no write in progress on any instance; others are omitted. */
  async turnsOf<K extends TurnKey>(keys: readonly K[]): Promise<ReadonlyMap<K, Turn>> {
    const { db } = this.#options;
    const ids = [...keys];
    const { rows } = await sql<{ account_id: string; turn: number; busy: boolean }>`
      select account_id, turn, exists (select from submissions where submissions.account_id = account_turns.account_id
        and ${IS_OPEN})
        or exists (select from submissions where signer = account_turns.account_id and ${IS_OPEN}) as busy
      from account_turns where account_id = any(${ids}::text[])`.execute(db);
    const found = new Map(rows.map((row) => [row.account_id as K, row]));
    // In one order on all instances, so that two such statements cannot deadlock.
    const fresh = ids.filter((id) => !found.has(id)).sort();
    if (fresh.length > 0)
      await db
        .insertInto("account_turns")
        .values(fresh.map((account_id) => ({ account_id })))
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    const turns = ids.map((id): [K, Turn | undefined] => {
      const row = found.get(id);
      return [id, row?.busy === true ? undefined : { number: row?.turn ?? 0 }];
    });
    return new Map(turns.filter((entry): entry is [K, Turn] => entry[1] !== undefined));
  }
}

function settlesBefore(promise: Promise<void>, deadline: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now()));
    void promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

function queueFull(): KeywrightError {
  return new KeywrightError(
    "queue_full",
    "Too many writes are waiting; the same request may succeed later. Nothing was sent or charged.",
    {},
    { retryAfterSeconds: 5 },
  );
}

export function busyAccount(): KeywrightError {
  return new KeywrightError(
    "timed_out",
    "Earlier writes of this account took too long; nothing was sent or charged for this one.",
    {},
    { retryAfterSeconds: 5 },
  );
}
