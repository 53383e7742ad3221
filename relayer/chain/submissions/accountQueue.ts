/**
 * Orders the writes of one account. Within this process: first come, first served. Between processes: the account's
 * turn number in the store, incremented by each write, so that a write overtaken by another is simulated again.
 */
import { sql } from "kysely";
import { KeywrightError, type ErrorCode, type ErrorFacts } from "../../../protocol/errors";
import { Crowded, FairShare, NotInTime, inScope } from "../../../protocol/fairShare";
import type { AccountId, Address } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { ChainTuning } from "../settings";
import { WRITE_IS_OPEN } from "./states";

/** Writes are serialized by account, and forward requests also by signer, since they carry consecutive nonces. */
export type TurnKey = AccountId | Address;

export class AccountQueue {
  readonly #writes: FairShare;
  readonly #db: Db;

  constructor(db: Db, { maxWaiting, maxWaitingPerAccount }: Pick<ChainTuning, "maxWaiting" | "maxWaitingPerAccount">) {
    this.#db = db;
    this.#writes = new FairShare({
      total: maxWaiting,
      mostEach: 1,
      mostWaiting: maxWaiting,
      // One of them is in turn.
      mostWaitingEach: maxWaitingPerAccount - 1,
    });
  }

  get waiting(): number {
    return this.#writes.waiting;
  }

  /**
   * Does `work` after all earlier writes of the account in this process. Throws `queue_full`, also when it had to make
   * room for an account with fewer writes in the queue, or `timed_out` at `deadline` (ms since the epoch).
   */
  inTurn<T>(accountId: AccountId, deadline: number, work: () => Promise<T>): Promise<T> {
    return inScope(accountId, undefined, async (scope) => {
      await scope.take(this.#writes, 1, { withinMs: Math.max(0, deadline - Date.now()) }).catch((error: unknown) => {
        if (!(error instanceof Crowded)) throw error;
        throw error instanceof NotInTime ? busyAccount() : queueFull();
      });
      return work();
    });
  }

  /** Turns of those accounts and signers that have no write in progress on any instance; others are omitted. */
  async turnsOf<K extends TurnKey>(keys: readonly K[]): Promise<ReadonlyMap<K, number>> {
    const { rows } = await sql<{ account_id: K; turn: number; busy: boolean }>`
      select account_id, turn, exists (select from writes where writes.account_id = account_turns.account_id
        and ${WRITE_IS_OPEN})
        or exists (select from writes where signer = account_turns.account_id and ${WRITE_IS_OPEN}) as busy
      from account_turns where account_id = any(${[...keys]}::text[])`.execute(this.#db);
    const known = new Set(rows.map(({ account_id: key }) => key));
    // In one order on all instances, so that two such statements cannot deadlock.
    const fresh = keys.filter((key) => !known.has(key)).sort();
    if (fresh.length > 0)
      await this.#db
        .insertInto("account_turns")
        .values(fresh.map((account_id) => ({ account_id })))
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    const idle = rows.filter(({ busy }) => !busy).map(({ account_id: key, turn }) => [key, turn] as const);
    return new Map([...fresh.map((key) => [key, 0] as const), ...idle]);
  }
}

const queueFull = (): KeywrightError =>
  tryAgain(
    "queue_full",
    "Too many writes are waiting; the same request may succeed later. Nothing was sent or charged.",
  );

export const busyAccount = (): KeywrightError =>
  tryAgain("timed_out", "Earlier writes of this account took too long; nothing was sent or charged for this one.");

/** A failure that the same request may not have in a few seconds. */
export const tryAgain = (code: ErrorCode, detail: string, facts: ErrorFacts = {}): KeywrightError =>
  new KeywrightError(code, detail, facts, { retryAfterSeconds: 5 });
