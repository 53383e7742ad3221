/**
 * Orders the writes of one account. Within this process: first come, first served; of each usage key one at a time is
 * in the account's queue, so that none, whatever it may do, keeps the owner's revocation out. Between processes: the
 * account's turn number in the store, incremented by each write, so that a write overtaken by another is simulated
 * again.
 */
import { sql } from "kysely";
import { KeywrightError, type ErrorCode, type ErrorFacts } from "../../../protocol/errors";
import { Crowded, FairShare, NotInTime, inScope } from "../../../protocol/fairShare";
import type { AccountId, KeyId } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { ChainTuning } from "../settings";
import { WRITE_IS_OPEN } from "./states";

const QUEUE_FULL = "Too many writes are waiting; the same request may succeed later. Nothing was sent or charged.";

export class AccountQueue {
  readonly #writes: FairShare;
  /** Of usage keys, before they are in their account's queue; named by account and key. */
  readonly #ofKeys: FairShare;
  readonly #db: Db;

  constructor(db: Db, { maxWaiting, maxWaitingPerAccount }: Pick<ChainTuning, "maxWaiting" | "maxWaitingPerAccount">) {
    this.#db = db;
    // One of an account's writes is in turn.
    const waiting = { mostWaiting: maxWaiting, mostWaitingEach: maxWaitingPerAccount - 1 };
    const oneEach = { total: maxWaiting, mostEach: 1, ...waiting };
    this.#writes = new FairShare(oneEach);
    // Which of them go on is decided in their account's queue, where each waits with its place in this one.
    const total = 4 * maxWaiting;
    this.#ofKeys = new FairShare({ ...oneEach, total, crowdOf: (name) => name.slice(0, name.indexOf(" ")) });
  }

  get waiting(): number {
    return this.#writes.waiting + this.#ofKeys.waiting;
  }

  /**
   * Does `work` after all earlier writes of the account in this process; one of a usage key first waits for that key's
   * earlier ones. Throws `queue_full`, also when it had to make
   * room for an account with fewer writes in the queue, or `timed_out` at `deadline` (ms since the epoch).
   */
  inTurn<T>(accountId: AccountId, deadline: number, work: () => Promise<T>, usageKey?: KeyId): Promise<T> {
    const ofAccount = (): Promise<T> => this.#turn(this.#writes, accountId, deadline, work);
    return usageKey === undefined
      ? ofAccount()
      : this.#turn(this.#ofKeys, `${accountId} ${usageKey}`, deadline, ofAccount);
  }

  #turn<T>(share: FairShare, name: string, deadline: number, work: () => Promise<T>): Promise<T> {
    return inScope(name, undefined, async (scope) => {
      await scope.take(share, 1, { withinMs: Math.max(0, deadline - Date.now()) }).catch((error: unknown) => {
        if (!(error instanceof Crowded)) throw error;
        throw error instanceof NotInTime ? busyAccount() : tryAgain("queue_full", QUEUE_FULL);
      });
      return work();
    });
  }

  /**
   * Turns of those accounts and signers (whose requests carry consecutive nonces) that have no write in progress on any
   * instance. New ones are stored in one order on all instances, so that two such statements cannot deadlock.
   */
  async turnsOf(keys: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const wanted = sql`${[...keys].sort()}::text[]`;
    const hasNone = sql`
        not exists (select from writes where writes.account_id = account_turns.account_id and ${WRITE_IS_OPEN})
        and not exists (select from writes where signer = account_turns.account_id and ${WRITE_IS_OPEN})`;
    const { rows } = await sql<{ account_id: string; turn: number }>`
      with fresh as (
        insert into account_turns (account_id) select key from unnest(${wanted}) key on conflict do nothing
        returning account_id, turn
      )
      select account_id, turn from fresh
      union all select account_id, turn from account_turns
        where account_id = any(${wanted}) and ${hasNone}`.execute(this.#db);
    return new Map(rows.map(({ account_id: key, turn }) => [key, turn]));
  }
}

export const busyAccount = (): KeywrightError =>
  tryAgain("timed_out", "Earlier writes of this account took too long; nothing was sent or charged for this one.");

/** A failure that the same request may not have in a few seconds. */
export const tryAgain = (code: ErrorCode, detail: string, facts: ErrorFacts = {}): KeywrightError =>
  new KeywrightError(code, detail, facts, { retryAfterSeconds: 5 });
