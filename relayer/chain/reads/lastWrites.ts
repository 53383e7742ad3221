/**
 * The block of the newest write that any relayer on this store has answered. Reads are served from there on, so a client sees its own write whichever
 * relayer it asks next. Where several relayers share the store it is asked each time (another may have written a moment ago), and questions of one tick share
 * one query; a relayer that has the store to itself knows by itself.
 */
import type { Db } from "../../store/database";

export class LastWrites {
  #asked: Promise<number> | undefined;
  #known: Promise<number> | undefined;

  constructor(
    private readonly db: Db,
    private readonly isAlone: boolean,
  ) {}

  block(): Promise<number> {
    return this.isAlone ? (this.#known ??= this.#ask()) : this.#askShared();
  }

  /** A write of this relayer has ended in this block. */
  note(block: number): void {
    if (this.isAlone) this.#known = this.block().then((known) => Math.max(known, block));
  }

  /** A reorg may have taken blocks back. */
  forget(): void {
    this.#known = undefined;
  }

  #askShared(): Promise<number> {
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
