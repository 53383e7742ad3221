/**
 * The block of the newest write that any relayer on this store has answered. Reads are served from there on, so a client sees its own write whichever
 * relayer it asks next. The store is asked each time (another relayer may have written a moment ago); questions of one tick share one query.
 */
import type { Db } from "../store/database";

export class LastWrites {
  #asked: Promise<number> | undefined;

  constructor(private readonly db: Db) {}

  block(): Promise<number> {
    this.#asked ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#asked = undefined;
      return this.#ask();
    });
    return this.#asked;
  }

  async #ask(): Promise<number> {
    const newest = await this.db.selectFrom("account_turns").select("last_block").orderBy("last_block", "desc").limit(1).executeTakeFirst();
    return newest?.last_block ?? 0;
  }
}
