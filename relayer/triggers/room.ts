/** What hooks may have waiting, and how many requests they accept: whoever knows one can send any number at once. */
import { sql } from "kysely";
import { KeywrightError } from "../../protocol/errors";
import { FairShare, inScope } from "../../protocol/fairShare";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { lockAccount } from "../store/locks";
import type { Db } from "../store/database";
import type { TriggerView } from "./types";

type Hook = Pick<TriggerView, "id" | "accountId">;

/** Where an insert is made: what it is refused with is thrown, and then nothing is stored. */
export type Within = <T>(insert: (db: Db) => Promise<T>) => Promise<T>;

/** Of the 20 connections to the store: those of an account would all wait for the same lock. */
const CONNECTIONS = 4;

export class HookRoom {
  readonly #db: Db;
  readonly #connections = new FairShare({ total: CONNECTIONS, mostEach: 1 });

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Each hook has a rate and a part of its own of what may wait for an account, so that others and schedules go on.
   * @throws KeywrightError `rate_limited`, `queue_full`.
   */
  async require({ id, accountId }: Hook, db: Db = this.#db): Promise<void> {
    const own = sql`select count(*)::int4 from trigger_firings where account_id = ${accountId}`;
    const { rows } = await sql<{ recent: number; waiting: number; ofHook: number }>`
      select (select count(*)::int4 from trigger_firings where trigger_id = ${id}
          and due_at > now() - interval '1 minute' and kind = 'hook') as recent,
        (${own} and state = 'waiting') + (${own} and state = 'running') as waiting,
        (${own} and state = 'waiting' and trigger_id = ${id}) + (${own} and state = 'running' and trigger_id = ${id})
          as "ofHook"
      `.execute(db);
    const { recent = 0, waiting = 0, ofHook = 0 } = rows[0] ?? {};
    if (recent >= TRIGGER_LIMITS.hooksPerMinute)
      throw new KeywrightError("rate_limited", "Too many requests to this hook.", {}, { retryAfterSeconds: 10 });
    const isHooks = ofHook >= TRIGGER_LIMITS.waitingPerHook;
    if (!isHooks && waiting < TRIGGER_LIMITS.waitingPerAccount) return;
    const detail = `Too many firings of the ${isHooks ? "hook" : "account"} wait.`;
    throw new KeywrightError("queue_full", detail, {}, { retryAfterSeconds: 10 });
  }

  /**
   * Inserts where there is room, one after the other of an account: together, each would be the last one.
   * @throws KeywrightError `rate_limited`, `queue_full`.
   */
  take<T>(hook: Hook, insert: (db: Db) => Promise<T>): Promise<T> {
    return inScope(hook.accountId, undefined, async (scope) => {
      await scope.take(this.#connections);
      return this.#db.transaction().execute(async (trx) => {
        await lockAccount(trx, "hooksOfAccount", hook.accountId);
        await this.require(hook, trx);
        return insert(trx);
      });
    });
  }
}
