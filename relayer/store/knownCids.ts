/**
 * CIDs seen in authenticated writes, so that lists can show them beside their hash. They are public: all accounts share
 * one table.
 */
import { actionHashOf, type ActionHash, type Cid } from "../../protocol/ids";
import type { Db } from "./database";

export class KnownCids {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async remember(cids: readonly Cid[]): Promise<void> {
    if (cids.length === 0) return;
    const rows = [...new Set(cids)].map((cid) => ({ action_hash: actionHashOf(cid), cid }));
    await this.#db
      .insertInto("known_cids")
      .values(rows)
      .onConflict((conflict) => conflict.column("action_hash").doNothing())
      .execute();
  }

  async lookUp(hashes: readonly ActionHash[]): Promise<ReadonlyMap<ActionHash, Cid>> {
    if (hashes.length === 0) return new Map();
    const rows = await this.#db.selectFrom("known_cids").selectAll().where("action_hash", "in", hashes).execute();
    return new Map(rows.map((row) => [row.action_hash as ActionHash, row.cid as Cid]));
  }
}
