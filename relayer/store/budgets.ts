/** The budgets of accounts, by action, name and window. What is used of them is on the chain. */
import { sql } from "kysely";
import type { Budget } from "../../protocol/budgets";
import type { AccountId, ActionHash, Cid } from "../../protocol/ids";
import type { Db } from "./database";

export interface KnownBudget extends Budget {
  readonly cid: Cid;
  readonly lastLimit: bigint;
  readonly leasedAt: Date;
}

export class BudgetStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Notes that a lease was asked for. */
  async note({ account, action, cid, name, window, lastLimit }: Omit<KnownBudget, "leasedAt">): Promise<void> {
    const key = { account_id: account, action_hash: action, name, window };
    await this.#db
      .insertInto("budgets")
      .values({ ...key, cid, last_limit: String(lastLimit) })
      .onConflict((conflict) =>
        conflict
          .columns(["account_id", "action_hash", "name", "window"])
          .doUpdateSet({ last_limit: String(lastLimit), leased_at: sql`now()` }),
      )
      .execute();
  }

  /** Most recently leased first. */
  async of(account: AccountId, { offset, limit }: { offset: number; limit: number }): Promise<readonly KnownBudget[]> {
    const rows = await this.#db
      .selectFrom("budgets")
      .selectAll()
      .where("account_id", "=", account)
      .orderBy("leased_at", "desc")
      .orderBy("action_hash")
      .orderBy("name")
      .orderBy("window")
      .offset(offset)
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      account,
      action: row.action_hash as ActionHash,
      cid: row.cid as Cid,
      name: row.name,
      window: row.window,
      lastLimit: BigInt(row.last_limit),
      leasedAt: row.leased_at,
    }));
  }
}
