/** The budgets of accounts, by action, name and window. What is used of them is on the chain. */
import { sql } from "kysely";
import type { KnownBudget } from "../../protocol/budgets";
import type { AccountId, ActionHash, Cid } from "../../protocol/ids";
import type { Page, PageRequest } from "../chain/types";
import type { Db } from "./database";

export class BudgetStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Notes that a lease was asked for. */
  async note({ account, action, cid, name, window, lastLimit }: KnownBudget): Promise<void> {
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

  /** Most recently leased first; `total` counts all. */
  async of(account: AccountId, { offset, limit }: PageRequest): Promise<Page<KnownBudget>> {
    const own = this.#db.selectFrom("budgets").where("account_id", "=", account);
    const [rows, { total }] = await Promise.all([
      own
        .selectAll()
        .orderBy("leased_at", "desc")
        .orderBy("action_hash")
        .orderBy("name")
        .orderBy("window")
        .offset(offset)
        .limit(limit)
        .execute(),
      own.select(({ fn }) => fn.countAll().as("total")).executeTakeFirstOrThrow(),
    ]);
    const items = rows.map((row) => ({
      account,
      action: row.action_hash as ActionHash,
      cid: row.cid as Cid,
      name: row.name,
      window: row.window,
      lastLimit: BigInt(row.last_limit),
    }));
    return { items, total: Number(total) };
  }
}
